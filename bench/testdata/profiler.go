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

// init takes profiles of a program that is built with this file laid over it: of the CPU until
// SIGUSR1, of allocations until then, and of the heap at that time. They are complete when the file
// with the suffix .done exists.
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
	signal.Notify(asked, syscall.SIGUSR1)
	go func() {
		<-asked
		pprof.StopCPUProfile()
		runtime.GC()
		for _, kind := range []string{"heap", "allocs", "goroutine"} {
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
		if err := os.WriteFile(path+".done", nil, 0o600); err != nil {
			log.Fatal(err)
		}
	}()
}
