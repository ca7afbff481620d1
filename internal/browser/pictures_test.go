package browser

// pictures takes those of docs/report.md: of the report of a run with stages, and
// of one of two runs. To make them anew, in this folder:
//
//	SCRAPESTAT_SHOTS=/tmp/shots go test -run TestReportOfEachEngine . && cp /tmp/shots/doc-*.png ../../docs/img/
func pictures(b *tab, one, two string) {
	b.t.Helper()
	b.size(1180, 760)
	b.open(one)
	b.shot("doc-top", false)
	look := func(name, selector string) {
		b.t.Helper()
		eval[any](b, `document.querySelector("`+selector+`").scrollIntoView({block: "start", behavior: "instant"})`)
		b.frames()
		b.frames()
		b.shot(name, false)
	}
	look("doc-stages", "#stages")
	b.prefers("dark")
	eval[any](b, `(() => { const b = [...document.querySelectorAll(".open")].find((o) => `+
		`/e2e_request_latency/.test(o.textContent)); b.click(); b.id = "picked"; b.scrollIntoView(); })()`)
	b.until(`document.querySelector(".detail canvas")`)
	look("doc-family", "#picked")
	b.prefers("light")
	b.open(two)
	look("doc-compare", "#compare")
	b.size(1400, 1000)
}
