package main

import (
	"context"
	"fmt"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/model/gemini"
	"google.golang.org/adk/v2/model/openaimodel"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"
)

// chosen is the model that the agent uses.
type chosen struct {
	model.LLM
	builtIn bool
}

// chooseModel takes the model that the environment names, or the built-in one.
func chooseModel(ctx context.Context, getenv func(string) string) (chosen, error) {
	if apiKey := getenv("GOOGLE_API_KEY"); apiKey != "" {
		name := getenv("GOOGLE_MODEL")
		if name == "" {
			name = "gemini-2.5-flash"
		}
		llm, err := gemini.NewModel(ctx, name, &genai.ClientConfig{APIKey: apiKey})
		return chosen{LLM: llm}, err
	}
	if url, name := getenv("OPENAI_BASE_URL"), getenv("OPENAI_MODEL"); url != "" && name != "" {
		llm, err := openaimodel.NewModel(ctx, name, &openaimodel.ClientConfig{BaseURL: url, APIKey: getenv("OPENAI_API_KEY")})
		return chosen{LLM: llm}, err
	}
	return chosen{LLM: builtIn{}, builtIn: true}, nil
}

type forecastArgs struct {
	City string `json:"city"`
}

type day struct {
	Date    string `json:"date"`
	Degrees int    `json:"degrees_celsius"`
	Sky     string `json:"sky"`
}

type forecast struct {
	City string `json:"city"`
	Days []day  `json:"days"`
}

// newWeatherTool makes the agent's one tool. Its forecasts are invented.
func newWeatherTool() (tool.Tool, error) {
	skies := []string{"sunny", "cloudy with a breeze from the sea", "showers after noon", "clear, with a cool evening"}
	return functiontool.New(
		functiontool.Config{Name: "get_weather", Description: "Returns the forecast of a week for a city."},
		func(_ agent.Context, args forecastArgs) (forecast, error) {
			f := forecast{City: args.City}
			for i := range 7 {
				n := len(args.City) + i*i
				f.Days = append(f.Days, day{fmt.Sprintf("2026-05-%02d", 9+i), 16 + n%9, skies[n%len(skies)]})
			}
			return f, nil
		})
}
