// Lighthouse on every chapter, as a phone on a slow network: fails where a score is below 95.
//   node run.js http://127.0.0.1:8000 book/01-autoregressive.html ...
import * as chromeLauncher from "chrome-launcher";
import lighthouse from "lighthouse";

const LEAST = 0.95;
const CATEGORIES = ["performance", "accessibility", "best-practices"];
const [site, ...pages] = process.argv.slice(2);

const percent = (score) => String(Math.round(score * 100)).padStart(4);
const chrome = await chromeLauncher.launch({
  chromePath: process.env.CHROME_PATH,
  chromeFlags: ["--headless=new", "--no-sandbox", "--disable-gpu"],
});
const low = [];
console.log(CATEGORIES.join(", "));
for (const page of pages) {
  const { lhr } = await lighthouse(`${site}/${page}`, { port: chrome.port, onlyCategories: CATEGORIES });
  const scores = CATEGORIES.map((name) => lhr.categories[name].score);
  console.log(scores.map(percent).join(""), page);
  if (scores.some((score) => score < LEAST)) {
    low.push(page);
    for (const name of CATEGORIES)
      for (const { id, weight } of lhr.categories[name].auditRefs) {
        const { score, displayValue = "" } = lhr.audits[id];
        if (weight && score !== null && score < 0.9) console.log(`       ${id}: ${displayValue}`);
      }
  }
}
await chrome.kill();
if (low.length) console.log(`below ${LEAST * 100}: ${low.join(", ")}`);
process.exitCode = low.length ? 1 : 0;
