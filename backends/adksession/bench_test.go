package adksession_test

import (
	"fmt"
	"testing"

	"google.golang.org/adk/v2/session"
	adkdatabase "google.golang.org/adk/v2/session/database"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/adkmemory/adkmemory/backends/adksession"
)

// BenchmarkTurn measures a whole turn: Get, append the user's message, append the answer. "adk" is ADK's own database
// service on the same connections. Events grow by two a turn, so run it with a fixed -benchtime=100x.
func BenchmarkTurn(b *testing.B) {
	services := []struct {
		name string
		open func(b *testing.B, place string) session.Service
	}{
		{"adkmemory", func(b *testing.B, place string) session.Service { return openAt(b, place, adksession.Config{}) }},
		{"adk", openADK},
	}
	for _, db := range databases() {
		for _, service := range services {
			for _, size := range []int{100, 1_000, 5_000, 20_000} {
				b.Run(fmt.Sprintf("%s/%s/events=%d", db.name, service.name, size), func(b *testing.B) {
					s := service.open(b, db.make(b))
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
}

// BenchmarkGetCold measures a Get of a session that is not in the cache.
func BenchmarkGetCold(b *testing.B) {
	for _, db := range databases() {
		for _, size := range []int{100, 5_000} {
			b.Run(fmt.Sprintf("%s/events=%d", db.name, size), func(b *testing.B) {
				s := openAt(b, db.make(b), adksession.Config{CacheBytes: -1})
				addTurns(b, s, create(b, s), 1, size/2)
				b.ReportAllocs()
				for b.Loop() {
					get(b, s)
				}
			})
		}
	}
}

func openADK(b *testing.B, place string) session.Service {
	s, err := adkdatabase.NewSessionService(storeAt(b, place).DB().Dialector, &gorm.Config{Logger: logger.Discard})
	if err != nil {
		b.Fatal(err)
	}
	if err := adkdatabase.AutoMigrate(s); err != nil {
		b.Fatal(err)
	}
	return s
}
