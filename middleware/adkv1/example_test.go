package adkv1_test

import (
	"fmt"

	"google.golang.org/adk/agent/llmagent"

	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/adkv1"
)

func ExampleModel() {
	mem, err := middleware.New(middleware.Config{Enabled: true}, middleware.Deps{Store: inmemory.New()})
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := llmagent.New(llmagent.Config{Name: "assistant", Model: adkv1.Model(mem, &scripted{})})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(a.Name())
	// Output: assistant
}
