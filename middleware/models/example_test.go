package models_test

import (
	"fmt"

	"google.golang.org/adk/v2/model/openaimodel"

	"github.com/adkmemory/adkmemory/middleware/models"
)

// A server of one's own that speaks OpenAI's Responses API, under a name of its own.
func ExampleRegistry_Register() {
	r := models.New(models.Config{})
	err := r.Register("vllm", models.OpenAI(openaimodel.ClientConfig{BaseURL: "http://gpu-1:8000/v1", APIKey: "none"}))
	fmt.Println(err, r.Providers())
	// Output: <nil> [apigee gemini ollama openai vertexai vllm]
}
