package token_test

import (
	"fmt"

	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/middleware/token"
)

func Example() {
	var estimate token.Estimator
	fmt.Println(estimate.Count("Where is my booking?"), estimate.Count("予約はどこ"))

	call := genai.NewContentFromFunctionCall("find_booking", map[string]any{"id": "ZFA04Y"}, genai.RoleModel)
	fmt.Println(token.Content(estimate, call))

	var calibration token.Calibration
	calibration.Learn("some-model", 1000, 1200)
	fmt.Println(calibration.Scale("some-model"))
	// Output:
	// 5 3
	// 15
	// 1.1
}
