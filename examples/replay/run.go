package main

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/platform"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/backends"
)

const (
	appName = "replay"
	userID  = "recorded"
)

// A drama is anything that can be run turn by turn: a recorded conversation or a scenario with several agents.
type drama struct {
	session string
	root    func(wrap func(model.LLM) model.LLM) (agent.Agent, error)
	turns   int
	begin   func(turn int) *genai.Content // what the user says
	end     func() error                  // checks the turn
	clock   *clock
}

// recorded makes a drama of a script.
func recorded(s script) drama {
	p := &player{script: s, clock: &clock{}}
	return drama{
		session: s.session,
		turns:   len(s.turns),
		begin:   p.begin,
		end:     p.end,
		clock:   p.clock,
		root: func(wrap func(model.LLM) model.LLM) (agent.Agent, error) {
			return llmagent.New(llmagent.Config{
				Name:  "replayed_agent",
				Model: wrap(scripted{"recorded", p.reply}),
				Tools: p.tools(),
				// A provider, since an Instruction's braces would be taken for state.
				InstructionProvider: func(agent.ReadonlyContext) (string, error) { return s.system, nil },
			})
		},
	}
}

// play runs a drama from its first turn to its last, without ever waiting for the memory, and measures it.
func play(ctx context.Context, d drama, m memory, onTurn func(done int)) (Result, error) {
	key := backends.SessionKey{App: appName, User: userID, Session: d.session}
	if err := forget(ctx, m.store, key); err != nil {
		return Result{}, err
	}
	p := newProbe(m.store)
	root, err := d.root(func(plain model.LLM) model.LLM { return p.wrap(m.wrap, plain) })
	if err != nil {
		return Result{}, err
	}
	sessions := session.InMemoryService()
	r, err := runner.New(runner.Config{AppName: appName, Agent: root, SessionService: sessions, AutoCreateSession: true})
	if err != nil {
		return Result{}, err
	}
	dropped := m.dropped()
	ctx = platform.WithTimeProvider(ctx, d.clock.Now)
	for turn := range d.turns {
		for _, err := range r.Run(ctx, userID, d.session, d.begin(turn), agent.RunConfig{}) {
			if err != nil {
				return Result{}, fmt.Errorf("session %s, turn %d: %w", d.session, turn, err)
			}
		}
		if err := d.end(); err != nil {
			return Result{}, fmt.Errorf("session %s: %w", d.session, err)
		}
		onTurn(turn + 1)
	}
	stored, err := sessions.Get(ctx, &session.GetRequest{AppName: appName, UserID: userID, SessionID: d.session})
	if err != nil {
		return Result{}, err
	}
	var events []*session.Event
	for e := range stored.Session.Events().All() {
		events = append(events, e)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.book(ctx, key); err != nil {
		return Result{}, err
	}
	return newResult(d, p, events, p.notes[key], m.dropped()-dropped), nil
}

// forget removes what an earlier replay into the same database left about the session.
func forget(ctx context.Context, store backends.Store, key backends.SessionKey) error {
	snapshot, err := store.Load(ctx, key, backends.Stamp{})
	if err != nil {
		return err
	}
	if snapshot.Stamp == (backends.Stamp{}) {
		return nil
	}
	return store.DeleteSession(ctx, key)
}

// replay runs one drama after the other, gives each result to show, and returns the total.
func replay(ctx context.Context, dramas []drama, m memory, show func(Result), progress func(d drama, done int)) (Result, error) {
	if len(dramas) == 0 {
		return Result{}, errors.New("the transcript holds no conversation")
	}
	total := Result{Session: "total"}
	for _, d := range dramas {
		result, err := play(ctx, d, m, func(done int) { progress(d, done) })
		if err != nil {
			return Result{}, err
		}
		show(result)
		total.add(result)
	}
	total.finish()
	return total, nil
}

// memory is what a replay needs of the library.
type memory struct {
	store   backends.Store
	wrap    func(model.LLM) model.LLM
	dropped func() int // messages that the hard limit forced out so far, the one number that only the library knows
	stop    func(context.Context) error
}

func countNotes(book *noteBook) (observations, reflections, generation int) {
	for note := range maps.Values(book.notes) {
		if note.Generation == 0 {
			observations++
			continue
		}
		reflections++
		generation = max(generation, note.Generation)
	}
	return observations, reflections, generation
}
