package inspect_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// chromium is a headless browser that is spoken to over a pipe, in the DevTools protocol.
type chromium struct {
	t       *testing.T
	in      *os.File
	session string // of the one tab
	done    chan struct{}

	mu      sync.Mutex
	last    int
	answers map[int]chan answer
	loaded  chan struct{}
	Heard   []string // what the browser complained about
	Asked   []string // addresses of requests
}

type answer struct {
	Result json.RawMessage
	Error  *struct{ Message string }
}

// startChromium skips the test where there is no Chromium.
func startChromium(t *testing.T) *chromium {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped by -short: starts a browser")
	}
	var program string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Skip("no Chromium is installed (Debian: apt-get install chromium); the pages are tested without a browser too")
	}
	home, err := os.MkdirTemp("", "inspect-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	toBrowser, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, fromBrowser, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
		"--disable-dev-shm-usage", "--disable-extensions", "--disable-sync", "--no-first-run", "--hide-scrollbars",
		"--user-data-dir="+filepath.Join(home, "profile"), "--remote-debugging-pipe", "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home)
	cmd.ExtraFiles = []*os.File{toBrowser, fromBrowser}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = toBrowser.Close()
	_ = fromBrowser.Close()
	c := &chromium{t: t, in: in, done: make(chan struct{}), answers: map[int]chan answer{}}
	go c.listen(out)
	t.Cleanup(func() {
		_ = c.write(map[string]any{"id": 1 << 30, "method": "Browser.close"})
		select {
		case <-c.done:
		case <-time.After(5 * time.Second):
		}
		cancel()
		_ = cmd.Wait()
		_ = in.Close()
		_ = out.Close()
		<-c.done
		_ = os.RemoveAll(home)
	})
	var target struct{ TargetID string }
	c.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	c.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	c.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		c.call(domain+".enable", nil, nil)
	}
	return c
}

func (c *chromium) write(message map[string]any) error {
	raw, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = c.in.Write(append(raw, 0))
	return err
}

// call waits for the answer to a command.
func (c *chromium) call(method string, params, result any) {
	c.t.Helper()
	message := map[string]any{"method": method}
	if params != nil {
		message["params"] = params
	}
	if c.session != "" {
		message["sessionId"] = c.session
	}
	got := make(chan answer, 1)
	c.mu.Lock()
	c.last++
	message["id"] = c.last
	c.answers[c.last] = got
	c.mu.Unlock()
	err := c.write(message)
	if err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
	select {
	case a := <-got:
		if a.Error != nil {
			err = errors.New(a.Error.Message)
		} else if result != nil {
			err = json.Unmarshal(a.Result, result)
		}
	case <-c.done:
		err = errors.New("the browser ended")
	case <-time.After(time.Minute):
		err = errors.New("no answer")
	}
	if err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
}

// listen hands out answers and notes events until the browser ends.
func (c *chromium) listen(out *os.File) {
	defer close(c.done)
	for r := bufio.NewReader(out); ; {
		raw, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m struct {
			ID     int
			Method string
			Params struct {
				Entry   struct{ Source, Level, Text, URL string }
				Request struct{ URL string }
			}
			answer
		}
		if json.Unmarshal(bytes.TrimSuffix(raw, []byte{0}), &m) != nil {
			continue
		}
		c.mu.Lock()
		switch {
		case m.ID != 0:
			if got := c.answers[m.ID]; got != nil {
				got <- m.answer
				delete(c.answers, m.ID)
			}
		case m.Method == "Page.loadEventFired" && c.loaded != nil:
			close(c.loaded)
			c.loaded = nil
		case m.Method == "Log.entryAdded":
			e := m.Params.Entry
			c.Heard = append(c.Heard, e.Source+" "+e.Level+": "+e.Text+" "+e.URL)
		case m.Method == "Runtime.consoleAPICalled", m.Method == "Runtime.exceptionThrown":
			c.Heard = append(c.Heard, string(raw))
		case m.Method == "Network.requestWillBeSent":
			c.Asked = append(c.Asked, m.Params.Request.URL)
		}
		c.mu.Unlock()
	}
}

// open shows an address and waits until everything of it is there.
func (c *chromium) open(address string) {
	c.t.Helper()
	loaded := make(chan struct{})
	c.mu.Lock()
	c.loaded = loaded
	c.mu.Unlock()
	c.call("Page.navigate", map[string]any{"url": address}, nil)
	select {
	case <-loaded:
	case <-c.done:
		c.t.Fatal("the browser ended")
	case <-time.After(time.Minute):
		c.t.Fatalf("%s was not loaded", address)
	}
}

// screen sets the size and the colour scheme.
func (c *chromium) screen(width, height int, scheme string) {
	c.t.Helper()
	c.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	c.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// eval runs a script of the test's own; the page has none.
func (c *chromium) eval(script string, result any) {
	c.t.Helper()
	var got struct {
		Result struct{ Value json.RawMessage }
	}
	c.call("Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true}, &got)
	if err := json.Unmarshal(got.Result.Value, result); err != nil {
		c.t.Fatalf("%s: %v", script, err)
	}
}

func (c *chromium) press(key, code string, keyCode int, text string) {
	c.t.Helper()
	down := map[string]any{"type": "keyDown", "key": key, "code": code, "windowsVirtualKeyCode": keyCode}
	if text != "" {
		down["text"] = text
	}
	c.call("Input.dispatchKeyEvent", down, nil)
	c.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "code": code, "windowsVirtualKeyCode": keyCode}, nil)
}

func (c *chromium) screenshot() image.Image {
	c.t.Helper()
	var shot struct{ Data string }
	c.call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	raw, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		c.t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		c.t.Fatal(err)
	}
	return picture
}
