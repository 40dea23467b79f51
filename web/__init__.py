"""What the site holds besides the book's pages: Python in the browser, the editor, mathematics."""
