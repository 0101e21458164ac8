// Command gjson-reference says what KEDA's metrics-api scaler reads from a body.
//
// It reads cases.json (bodies, each with valueLocations) from the directory it is started in and writes, for every
// pair, what the gjson release of KEDA 2.21 finds and what KEDA makes of it: a number, or an error. KEDA accepts a JSON
// number, or a string that Kubernetes can parse as a Quantity, and nothing else.
//
//	go run . > ../gjson_reference.json
package main

import (
	"encoding/json"
	"log"
	"math"
	"os"

	"github.com/tidwall/gjson"
	"k8s.io/apimachinery/pkg/api/resource"
)

type group struct {
	Body  string   `json:"body"`
	Paths []string `json:"paths"`
}

type answer struct {
	Body  string `json:"body"`
	Path  string `json:"path"`
	Type  string `json:"type"`
	Raw   string `json:"raw"`
	Error bool   `json:"error"`
	// Number is absent on an error and where the value has no JSON notation; Special then names it.
	Number  *float64 `json:"number,omitempty"`
	Special string   `json:"special,omitempty"`
}

func read(body, path string) answer {
	found := gjson.GetBytes([]byte(body), path)
	result := answer{Body: body, Path: path, Type: found.Type.String(), Raw: found.Raw, Error: true}
	var value float64
	switch found.Type {
	case gjson.Number:
		value = found.Num
	case gjson.String:
		quantity, err := resource.ParseQuantity(found.Str)
		if err != nil {
			return result
		}
		value = quantity.AsApproximateFloat64()
	default:
		return result
	}
	result.Error = false
	switch {
	case math.IsNaN(value):
		result.Special = "NaN"
	case math.IsInf(value, 0):
		result.Special = "Inf"
	default:
		result.Number = &value
	}
	return result
}

func main() {
	text, err := os.ReadFile("cases.json")
	if err != nil {
		log.Fatal(err)
	}
	var groups []group
	if err := json.Unmarshal(text, &groups); err != nil {
		log.Fatal(err)
	}
	answers := []answer{}
	for _, g := range groups {
		for _, path := range g.Paths {
			answers = append(answers, read(g.Body, path))
		}
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(answers); err != nil {
		log.Fatal(err)
	}
}
