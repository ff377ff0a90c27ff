package inspect

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

//go:embed templates assets
var files embed.FS

// page is what a template shows.
type page struct {
	name    string // of its template
	status  int    // default 200
	Title   string
	Crumbs  []crumb // the way back, without the page itself
	Data    any
	Version string // of the assets; set by render
}

type crumb struct{ Name, Link string }

// views are the parsed templates and the assets.
type views struct {
	pages   map[string]*template.Template
	assets  map[string][]byte
	version string
}

func newViews() (*views, error) {
	v := &views{pages: map[string]*template.Template{}, assets: map[string][]byte{}}
	common, err := template.New("").Funcs(template.FuncMap{
		"thousands": thousands, "date": date, "iso": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"visible": visible, "plural": plural,
	}).ParseFS(files, "templates/common/*.html")
	if err != nil {
		return nil, fmt.Errorf("adkmemory: inspect: %w", err)
	}
	for _, name := range []string{"sessions", "session", "note", "messages", "problem"} {
		t, err := common.Clone()
		if err == nil {
			t, err = t.ParseFS(files, "templates/"+name+".html")
		}
		if err != nil {
			return nil, fmt.Errorf("adkmemory: inspect: %w", err)
		}
		v.pages[name] = t
	}
	names, _ := fs.Glob(files, "assets/*")
	sum := sha256.New()
	for _, name := range names {
		b, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("adkmemory: inspect: %w", err)
		}
		v.assets[name] = b
		sum.Write(b)
	}
	v.version = hex.EncodeToString(sum.Sum(nil)[:6])
	return v, nil
}

// render writes a page. It is built in memory first, so that a fault in a template cannot cut it off half-way.
func (v *views) render(w http.ResponseWriter, p page) {
	var b bytes.Buffer
	p.Version = v.version
	if err := v.pages[p.name].ExecuteTemplate(&b, "layout", p); err != nil {
		http.Error(w, "the page could not be built", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	if p.status != 0 {
		w.WriteHeader(p.status)
	}
	_, _ = w.Write(b.Bytes())
}

// asset serves the style sheet and the icon, to everybody: they tell nothing. Their address changes with their content.
func (v *views) asset(w http.ResponseWriter, name string) bool {
	b, ok := v.assets[name]
	if !ok {
		return false
	}
	types := map[string]string{".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
	w.Header().Set("Content-Type", types[path.Ext(name)])
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.Header().Set("Cache-Control", "public, max-age=86400")
	_, _ = w.Write(b)
	return true
}

// link is the relative address of a page about a session. more holds names and values of further parameters.
func link(page string, key backends.SessionKey, more ...string) string {
	q := url.Values{}
	set := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	set("app", key.App)
	set("user", key.User)
	set("session", key.Session)
	for i := 0; i+1 < len(more); i += 2 {
		set(more[i], more[i+1])
	}
	return page + "?" + q.Encode()
}

// number reads a parameter that counts something; 0 when it is absent.
func number(r *http.Request, name string) (int64, error) {
	s := r.URL.Query().Get(name)
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > 1<<40 {
		return 0, errBadRequest
	}
	return n, nil
}
