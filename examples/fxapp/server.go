package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"go.uber.org/fx"
	"google.golang.org/genai"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/runner"
)

const (
	maxQuestionBytes = 1 << 20
	headerTimeout    = 10 * time.Second
)

// server answers questions over HTTP.
type server struct {
	runner *runner.Runner
	log    *slog.Logger
}

// newServer listens when the application starts. Stopping it lets the answers in progress end; it stops before the
// memory that they use.
func newServer(s Settings, r *runner.Runner, log *slog.Logger, lc fx.Lifecycle) *server {
	srv := &server{runner: r, log: log}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /ask", srv.ask)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	h := &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout}
	lc.Append(fx.StartStopHook(
		func(ctx context.Context) error {
			l, err := new(net.ListenConfig).Listen(ctx, "tcp", s.Service.Listen)
			if err != nil {
				return err
			}
			log.Info("listening", "address", l.Addr().String())
			go func() {
				if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
					log.Error("serve", "error", err)
				}
			}()
			return nil
		},
		h.Shutdown,
	))
	return srv
}

type question struct {
	Session string `json:"session"`
	Text    string `json:"text"`
}

type answer struct {
	Text string `json:"text"`
}

// ask runs one turn. Who asks is told by the proxy that has authenticated them, never by the body: the user is what
// keeps one person's memory from another's.
func (s *server) ask(w http.ResponseWriter, r *http.Request) {
	user := r.Header.Get("X-User")
	var q question
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxQuestionBytes)).Decode(&q); err != nil || user == "" || q.Session == "" || q.Text == "" {
		http.Error(w, `want an X-User header and {"session":"…","text":"…"}`, http.StatusBadRequest)
		return
	}
	var text strings.Builder
	for event, err := range s.runner.Run(r.Context(), user, q.Session, genai.NewContentFromText(q.Text, genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			s.log.ErrorContext(r.Context(), "turn", "session", q.Session, "error", err)
			http.Error(w, "the agent failed", http.StatusBadGateway)
			return
		}
		if event.IsFinalResponse() && event.Content != nil {
			for _, p := range event.Content.Parts {
				text.WriteString(p.Text)
			}
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer{Text: text.String()})
}
