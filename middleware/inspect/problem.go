package inspect

import (
	"context"
	"errors"
	"net/http"
)

// problem is an error with a page of its own.
type problem struct {
	status        int
	Title, Detail string
}

func (p *problem) Error() string { return p.Title }

var (
	errNotFound = &problem{http.StatusNotFound, "Not found",
		"There is no such page, or you may not see it."}
	errForbidden = &problem{http.StatusForbidden, "Not allowed",
		"You may not see the sessions of all users. A link to one user's sessions may work."}
	errBadRequest = &problem{http.StatusBadRequest, "Bad request",
		"The address of this page holds something that it does not understand."}
	errTimeout = &problem{http.StatusServiceUnavailable, "Too slow",
		"The store did not answer in time. Try again, or narrow the search."}
	errStore = &problem{http.StatusInternalServerError, "The memory could not be read",
		"The store failed. The log of the application says why."}
)

// problem turns an error into its page. Only failures of the store are logged.
func (h *handler) problem(r *http.Request, err error) page {
	var known *problem
	if !errors.As(err, &known) {
		known = errStore
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			known = errTimeout
		}
		if !errors.Is(err, context.Canceled) { // a reader who left is no failure
			h.cfg.Logger.ErrorContext(r.Context(), "adkmemory: the inspector could not read the store", "error", err)
		}
	}
	return page{name: "problem", status: known.status, Title: known.Title, Data: known}
}
