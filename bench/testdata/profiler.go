// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"syscall"
)

// init takes profiles of a program that is built with this file laid over it: of the heap at
// SIGUSR2, and of the CPU and of allocations until SIGUSR1. What a signal asked for is
// complete when the file with the suffix .done exists.
func init() {
	path := os.Getenv("BENCH_PROFILE")
	if path == "" {
		return
	}
	file, err := os.Create(path + ".cpu")
	if err != nil {
		log.Fatal(err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		log.Fatal(err)
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		for sig := range asked {
			kinds := []string{"allocs", "goroutine"}
			if sig == syscall.SIGUSR2 {
				runtime.GC()
				kinds = []string{"heap"}
			} else {
				pprof.StopCPUProfile()
			}
			for _, kind := range kinds {
				write(path, kind)
			}
			if err := os.WriteFile(path+".done", nil, 0o600); err != nil {
				log.Fatal(err)
			}
		}
	}()
}

func write(path, kind string) {
	out, err := os.Create(path + "." + kind)
	if err != nil {
		log.Fatal(err)
	}
	if err := pprof.Lookup(kind).WriteTo(out, 0); err != nil {
		log.Fatal(err)
	}
	if err := out.Close(); err != nil {
		log.Fatal(err)
	}
}
