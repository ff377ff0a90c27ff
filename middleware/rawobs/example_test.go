package rawobs_test

import (
	"fmt"

	"github.com/adkmemory/adkmemory/middleware/rawobs"
)

func Example() {
	outputs := rawobs.NewRegistry(rawobs.Config{})
	session := outputs.Session("app/user/session")
	session.RecordObservation("call-1", "find_booking", `{"id":"ZFA04Y","status":"confirmed"}`)
	session.RecordObservation("call-2", "get_price", `{"usd":152}`)
	fmt.Println(session.ContextString())
	// Output:
	// {"id":"ZFA04Y","status":"confirmed"}
	// ---OBSERVATION---
	// {"usd":152}
}
