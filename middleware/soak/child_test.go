package soak

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/genai"
	"gorm.io/gorm"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/adksession"
	"github.com/adkmemory/adkmemory/backends/postgres"
	"github.com/adkmemory/adkmemory/backends/sqlite"
	"github.com/adkmemory/adkmemory/middleware"
)

// The environment by which the parent tells a child what to do.
const (
	envDSN      = "ADKMEMORY_SOAK_DSN"
	envSeed     = "ADKMEMORY_SOAK_SEED"
	envSessions = "ADKMEMORY_SOAK_SESSIONS"
)

// echo is a model that answers with a few words of what it was asked.
type echo struct{}

func (echo) Name() string { return "echo" }

func (echo) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		last := req.Contents[len(req.Contents)-1]
		yield(&model.LLMResponse{Content: genai.NewContentFromText("Understood: "+last.Parts[0].Text, genai.RoleModel)}, nil)
	}
}

// database is what a replica needs of a SQL backend.
type database interface {
	backends.Store
	DB() *gorm.DB
}

func openDatabase(ctx context.Context, dsn string) (database, error) {
	if strings.HasPrefix(dsn, "/") {
		return sqlite.Open(ctx, dsn)
	}
	return postgres.Open(ctx, dsn)
}

// replica is one process of the application: sessions and memory in one database.
type replica struct {
	store    database
	sessions session.Service
	mem      *middleware.Middleware
	runner   *runner.Runner
}

func newReplica(ctx context.Context, dsn string, threshold int) (*replica, error) {
	store, err := openDatabase(ctx, dsn)
	if err != nil {
		return nil, err
	}
	sessions, err := adksession.New(ctx, store.DB(), adksession.Config{})
	if err != nil {
		return nil, err
	}
	return newReplicaOn(ctx, store, sessions, threshold, middleware.Deps{Store: store})
}

func newReplicaOn(ctx context.Context, store database, sessions session.Service, threshold int, deps middleware.Deps) (*replica, error) {
	deps.Logger = slog.New(slog.DiscardHandler)
	mem, err := middleware.New(
		middleware.Config{Enabled: true, Extractive: deps.Observer == nil, MessageTokenThreshold: threshold, ObservationTokenThreshold: 600, MaxMessageTokenBudget: 2000},
		deps)
	if err != nil {
		return nil, err
	}
	plug, err := mem.Plugin()
	if err != nil {
		return nil, err
	}
	a, err := llmagent.New(llmagent.Config{Name: "soaked", Model: mem.Model(echo{}), Instruction: "Repeat."})
	if err != nil {
		return nil, err
	}
	r, err := runner.New(runner.Config{
		AppName: "soak", Agent: a, SessionService: sessions, AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{plug}},
	})
	if err != nil {
		return nil, err
	}
	return &replica{store, sessions, mem, r}, mem.Start(ctx)
}

func (r *replica) close(ctx context.Context) error {
	return errors.Join(r.mem.Stop(ctx), r.store.Close())
}

func (r *replica) say(ctx context.Context, key backends.SessionKey, text string) error {
	for _, err := range r.runner.Run(ctx, key.User, key.Session, genai.NewContentFromText(text, genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			return err
		}
	}
	return nil
}

func sessionKey(i int) backends.SessionKey {
	return backends.SessionKey{App: "soak", User: fmt.Sprintf("user-%d", i%17), Session: fmt.Sprintf("session-%d", i)}
}

// child talks in random sessions until it is told to stop, or killed.
func child() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	seed, _ := strconv.ParseUint(os.Getenv(envSeed), 10, 64)
	sessions, _ := strconv.Atoi(os.Getenv(envSessions))
	r, err := newReplica(ctx, os.Getenv(envDSN), 200)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("ready")
	random := rand.New(rand.NewPCG(seed, seed))
	for n := 0; ctx.Err() == nil; n++ {
		key := sessionKey(random.IntN(sessions))
		text := fmt.Sprintf("Message %d of process %d says that parcel P%d weighs %d kilograms and goes to Lisbon on 2026-05-%02d.",
			n, seed, random.IntN(1e6), random.IntN(90)+1, random.IntN(28)+1)
		err := r.say(ctx, key, text)
		// Two processes may speak in one session at once; the database lets one of them go on.
		if err != nil && ctx.Err() == nil && !errors.Is(err, adksession.ErrStale) && !errors.Is(err, adksession.ErrExists) {
			fmt.Fprintln(os.Stderr, "turn:", err)
			return 1
		}
	}
	end, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := r.close(end); err != nil {
		fmt.Fprintln(os.Stderr, "stop:", err)
		return 1
	}
	return 0
}
