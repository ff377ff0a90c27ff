package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lines hands what is written on, line by line.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

func get(t *testing.T, address string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, %v\n%s", address, res.StatusCode, err, body)
	}
	return string(body)
}

func TestInspector(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := make(lines, 10)
	done := make(chan error, 1)
	go func() { done <- run(ctx, []string{"-addr", "127.0.0.1:0"}, out) }()
	var address string
	for address == "" {
		select {
		case line := <-out:
			address = regexp.MustCompile(`http://[^ ]+`).FindString(line)
		case err := <-done:
			t.Fatal(err)
		}
	}
	t.Run("OPS-5 the list shows every conversation", func(t *testing.T) {
		list := get(t, address)
		for _, c := range conversations {
			if !strings.Contains(list, c.session) || !strings.Contains(list, c.user) {
				t.Errorf("%s of %s is not in the list", c.session, c.user)
			}
		}
	})
	t.Run("OPS-5 the longest one has every layer, and sends less than its history", func(t *testing.T) {
		page := get(t, address+"session?app=garden&user=mei&session=spring-plan")
		for _, text := range []string{"generation 2", "generation 1", "Observation 1", "Knowledge", "## Conversation Memory", "600"} {
			if !strings.Contains(page, text) {
				t.Errorf("%q is not shown", text)
			}
		}
		share := regexp.MustCompile(`tokens, (\d\d) %`).FindStringSubmatch(page)
		if share == nil || share[1] > "60" {
			t.Errorf("share sent: %v", share)
		}
	})
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestFromThisComputer(t *testing.T) {
	t.Parallel()
	for host, allowed := range map[string]bool{
		"127.0.0.1:8484": true, "localhost:8484": true, "[::1]:80": true, "localhost": true,
		"evil.example:8484": false, "192.0.2.7": false, "": false, "localhost.evil.example": false,
	} {
		t.Run("OPS-5 host "+host, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			r.Host = host
			if err := fromThisComputer(r, app, ""); (err == nil) != allowed {
				t.Errorf("allowed: %t", err == nil)
			}
		})
	}
}

func Example() {
	ctx, stop := context.WithCancelCause(context.Background())
	stop(errors.New("the reader has seen enough"))
	_ = run(ctx, []string{"-addr", "127.0.0.1:0"}, io.Discard)
	// Output:
}
