package adksession_test

import (
	"errors"
	"testing"

	"github.com/adkmemory/adkmemory/backends"
)

func isConflict(err error) bool { return errors.Is(err, backends.ErrConflict) }

var _ *testing.T
