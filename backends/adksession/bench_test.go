package adksession_test

import (
	"fmt"
	"testing"

	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/session/database"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/adkmemory/adkmemory/backends/adksession"
	"github.com/adkmemory/adkmemory/backends/sqlite"
)

// BenchmarkTurn measures a whole turn: Get, append the user's message, append the answer. "adk" is ADK's own database
// service on the same driver with the same settings. Events grow by two a turn, so run it with a fixed -benchtime=200x.
func BenchmarkTurn(b *testing.B) {
	services := []struct {
		name string
		open func(b *testing.B) session.Service
	}{
		{"adkmemory", func(b *testing.B) session.Service { return open(b) }},
		{"adk", openADK},
	}
	for _, service := range services {
		for _, size := range []int{100, 1_000, 5_000, 20_000} {
			b.Run(fmt.Sprintf("sqlite/%s/events=%d", service.name, size), func(b *testing.B) {
				s := service.open(b)
				addTurns(b, s, create(b, s), 1, size/2)
				b.ReportAllocs()
				n := size
				for b.Loop() {
					sess := get(b, s)
					addTurns(b, s, sess, n, n)
					n++
				}
			})
		}
	}
}

// BenchmarkGetCold measures a Get of a session that is not in the cache.
func BenchmarkGetCold(b *testing.B) {
	for _, size := range []int{100, 5_000} {
		b.Run(fmt.Sprintf("sqlite/events=%d", size), func(b *testing.B) {
			s := openFile(b, file(b), adksession.Config{CacheBytes: -1})
			addTurns(b, s, create(b, s), 1, size/2)
			b.ReportAllocs()
			for b.Loop() {
				get(b, s)
			}
		})
	}
}

func openADK(b *testing.B) session.Service {
	store, err := sqlite.Open(b.Context(), file(b))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	s, err := database.NewSessionService(store.DB().Dialector, &gorm.Config{Logger: logger.Discard})
	if err != nil {
		b.Fatal(err)
	}
	if err := database.AutoMigrate(s); err != nil {
		b.Fatal(err)
	}
	return s
}
