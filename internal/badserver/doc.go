// Package badserver is a metrics endpoint that misbehaves on script, and keeps a ledger of what it served, so that a
// test can hold the ledger of a recording against it.
//
//	script, err := badserver.Case("T06") // or Parse of a text of your own
//	srv, err := badserver.Start(badserver.Options{Script: script})
//	defer srv.Close()
//	... poll http://srv.Addr ...
//	fmt.Print(srv.Ledger())
//
// It speaks TCP and writes each answer byte by byte itself: a response that no HTTP library would send costs no more
// than a good one. A script has one answer a line, in the order of the requests; the last one is given for ever, and a
// first line "loop" begins again after the last:
//
//	# every third answer is an error
//	loop
//	200 body="a_total 1\n"
//	200 body="a_total 2\n" delay=5ms
//	500 body="no\n"
//
// The first word is a status, hang (the request is read and never answered), reset (the connection is reset), close (it
// is closed), or raw (only the body is sent, without any head). The other words of a line:
//
//	body="text"         appended to the body; a Go string, any number of times
//	fill=N:"text"       appended to the body N times
//	count=N:"text"      the same, and each # in it is the number, from 0
//	bomb=N              the body is N zero bytes, gzipped, made as it is sent
//	gzip                the body is gzipped, and the header says so
//	gzipped             the body is gzipped, and no header says so
//	type="text"         Content-Type; type="" sends none
//	header="Name: text" another line of the head; any number of times
//	length=N            Content-Length instead of the true one
//	chunked             in chunks of 64 bytes, instead of with a length
//	nolength            neither: the end of the connection is the end
//	cut=N               the connection is closed after N bytes of the body
//	tail="text"         sent behind the body
//	delay=D             before the first byte
//	drip=D              between two bytes of the body
//	path=/p             the answer is for this path only; other paths get a 404
//	n=N                 the answer is given N times before the next one's turn
package badserver
