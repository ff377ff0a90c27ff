package token_test

import (
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/adkmemory/adkmemory/middleware/token"
)

func TestCalibration(t *testing.T) {
	t.Parallel()
	near := func(got, want float64) bool { return math.Abs(got-want) < 0.01 }

	t.Run("BUD-6 an unknown model and a nil calibration have factor 1", func(t *testing.T) {
		t.Parallel()
		var none *token.Calibration
		none.Learn("m", 100, 200)
		if none.Scale("m") != 1 || new(token.Calibration).Scale("m") != 1 {
			t.Error("factor is not 1")
		}
	})
	t.Run("BUD-6 it comes to the reported ratio, per model", func(t *testing.T) {
		t.Parallel()
		var c token.Calibration
		for range 30 {
			c.Learn("low", 1000, 800)
			c.Learn("high", 1000, 1300)
		}
		if !near(c.Scale("low"), 0.8) || !near(c.Scale("high"), 1.3) {
			t.Errorf("low %v, high %v", c.Scale("low"), c.Scale("high"))
		}
	})
	t.Run("BUD-6 it follows a change", func(t *testing.T) {
		t.Parallel()
		var c token.Calibration
		for range 1000 {
			c.Learn("m", 1000, 800)
		}
		for range 30 {
			c.Learn("m", 1000, 1500)
		}
		if !near(c.Scale("m"), 1.5) {
			t.Errorf("factor %v", c.Scale("m"))
		}
	})
	t.Run("BUD-6 one odd report moves it by at most a half of what is allowed", func(t *testing.T) {
		t.Parallel()
		var c token.Calibration
		c.Learn("m", 1000, math.MaxInt)
		if got := c.Scale("m"); got > 1.5 {
			t.Errorf("factor %v", got)
		}
	})
	t.Run("BUD-6 it stays within 0.5 and 2", func(t *testing.T) {
		t.Parallel()
		var c token.Calibration
		for range 100 {
			c.Learn("high", 1000, 1_000_000)
			c.Learn("low", 1_000_000, 1)
		}
		if c.Scale("high") > 2 || c.Scale("low") < 0.5 {
			t.Errorf("high %v, low %v", c.Scale("high"), c.Scale("low"))
		}
	})
	t.Run("BUD-6 tiny prompts and missing reports teach nothing", func(t *testing.T) {
		t.Parallel()
		var c token.Calibration
		c.Learn("m", 5, 500)
		c.Learn("m", 1000, 0)
		c.Learn("m", 1000, -1)
		c.Learn("m", 0, 10)
		if c.Scale("m") != 1 {
			t.Errorf("factor %v", c.Scale("m"))
		}
	})
	t.Run("BUD-6 SEC-4 the model learned about longest ago is forgotten", func(t *testing.T) {
		t.Parallel()
		var c token.Calibration
		for i := range 1000 {
			c.Learn("kept", 1000, 1500)
			c.Learn(fmt.Sprint("model-", i), 1000, 1500)
		}
		if c.Scale("kept") == 1 || c.Scale("model-999") == 1 {
			t.Error("a recent model was forgotten")
		}
		if c.Scale("model-0") != 1 || c.Scale("model-800") != 1 {
			t.Error("an old model is still known")
		}
	})
	t.Run("BUD-6 concurrent use", func(t *testing.T) {
		t.Parallel()
		var c token.Calibration
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for range 200 {
					c.Learn(fmt.Sprint(i%3), 1000, 1200)
					c.Scale("0")
				}
			})
		}
		wg.Wait()
		if !near(c.Scale("0"), 1.2) {
			t.Errorf("factor %v", c.Scale("0"))
		}
	})
}

func BenchmarkCalibrationScale(b *testing.B) {
	var c token.Calibration
	c.Learn("gemini-2.5-flash", 1000, 1100)
	b.ReportAllocs()
	for b.Loop() {
		c.Scale("gemini-2.5-flash")
	}
}
