package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/inspect"
)

func Example() {
	store := inmemory.New()
	defer func() { _ = store.Close() }()
	config := middleware.Config{Enabled: true, RecordTurns: 100}
	mem, err := middleware.New(config, middleware.Deps{Store: store})
	if err != nil {
		panic(err)
	}
	page, err := inspect.New(inspect.Config{
		Store: store, Apps: []string{"travel"}, Turns: mem, Memory: config,
		Authorize: func(r *http.Request, app, user string) error {
			if _, password, _ := r.BasicAuth(); password != "secret" { // ask your own login instead
				return errors.New("not an operator")
			}
			return nil
		},
	})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/debug/memory/", http.StripPrefix("/debug/memory", page))

	for _, password := range []string{"guess", "secret"} {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/debug/memory/", nil)
		r.SetBasicAuth("operator", password)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// 403
	// 200
}
