// Launches DBOS for Go, so that it makes its system tables.
package main

import (
	"context"
	"os"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
)

func main() {
	transact, err := dbos.NewContext(context.Background(), dbos.Config{
		AppName:            "harness",
		DatabaseURL:        os.Args[1],
		ApplicationVersion: "harness-version",
		ExecutorID:         "harness-executor",
	})
	if err != nil {
		panic(err)
	}
	if err := dbos.Launch(transact); err != nil {
		panic(err)
	}
	dbos.Shutdown(transact, 5*time.Second)
}
