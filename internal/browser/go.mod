module github.com/scrapestat/scrapestat/internal/browser

go 1.26.0
