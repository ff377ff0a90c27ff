package config_test

import (
	"fmt"
	"os"

	"github.com/adkmemory/adkmemory/middleware/config"
)

func ExampleLoad() {
	settings, err := config.Load(config.Source{
		File:        "", // "memory.yaml"
		Environment: append(os.Environ(), "ADKMEMORY_OBSERVATIONAL_MEMORY_ENABLED=true"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(settings.ObservationalMemory.Enabled)
	// Output: true
}
