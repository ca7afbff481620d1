package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// askLLM is the load generator of the scripts: `askllm ADDRESS N` waits until
// somebody listens, then sends N requests one after the other and reads their
// streams to the end.
func askLLM() {
	if len(os.Args) != 3 {
		panic("usage: askllm ADDRESS N")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	n, err := strconv.Atoi(os.Args[2])
	if err == nil && !askUntil(ctx, func() bool { return listening(os.Args[1]) }) {
		err = errors.New("nobody listens")
	}
	for i := 0; i < n && err == nil; i++ {
		err = askOnce(ctx, os.Args[1], i)
	}
	if err != nil {
		panic(err) // ends the program, not as it should
	}
}

func askOnce(ctx context.Context, address string, i int) error {
	body := `{"stream":true,"stream_options":{"include_usage":true},"max_tokens":5,"ignore_eos":true,"messages":[{` +
		`"role":"user","content":"how are you?"}]}`
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/v1/chat/completions",
		strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("X-Request-Id", "ask-"+strconv.Itoa(i))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	all, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err == nil && resp.StatusCode == http.StatusOK && len(all) == 0 {
		err = errors.New("the answer is empty")
	}
	return err
}
