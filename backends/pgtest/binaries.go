package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
)

// errMissing says what a machine needs.
var errMissing = errors.New("no Postgres to test on: install it (Debian, Ubuntu: apt-get install postgresql; " +
	"macOS: brew install postgresql; Fedora: dnf install postgresql-server), or set " + Env +
	" to a server where databases can be made, or to \"off\" to skip these tests")

// binaries returns the folder that holds initdb and postgres. It installs them where that asks nobody for leave.
func binaries(ctx context.Context) (string, error) {
	if bin := find(); bin != "" {
		return bin, nil
	}
	apt, err := exec.LookPath("apt-get")
	if err != nil || os.Geteuid() != 0 {
		return "", errMissing
	}
	for _, args := range [][]string{
		{"update", "-q"},
		{"install", "-qy", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300", "postgresql"},
	} {
		cmd := exec.CommandContext(ctx, apt, args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%w (apt-get %s: %w: %s)", errMissing, args[0], err, out)
		}
	}
	if bin := find(); bin != "" {
		return bin, nil
	}
	return "", errMissing
}

// Installed reports whether [NewCluster] finds a Postgres without installing one.
func Installed() bool { return find() != "" }

// find looks in the PATH, then for the newest version where Debian keeps them.
func find() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil && complete(filepath.Dir(path)) {
			return filepath.Dir(path)
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.SortFunc(found, func(a, b string) int { return version(b) - version(a) })
	for _, bin := range found {
		if complete(bin) {
			return bin
		}
	}
	return ""
}

func complete(bin string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(bin, name)); err != nil {
			return false
		}
	}
	return true
}

func version(bin string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	return n
}
