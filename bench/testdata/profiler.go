// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"log"
	"os"
	"os/signal"
	"runtime"
	"runtime/metrics"
	"runtime/pprof"
	"strings"
	"syscall"
)

// init takes profiles of the program into which this file is built. SIGUSR2 requests a profile of the heap, with
// the figures of the runtime's memory. SIGUSR1 ends the profiles of the CPU and of allocations. A requested
// profile is complete when the file with the suffix .done exists.
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
				writeMemory(path)
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

// writeMemory writes how much memory the runtime has from the system, by class, in MiB.
func writeMemory(path string) {
	var samples []metrics.Sample
	for _, d := range metrics.All() {
		if strings.HasPrefix(d.Name, "/memory/classes/") || strings.HasPrefix(d.Name, "/gc/heap/live:") || strings.HasPrefix(d.Name, "/sched/goroutines:") {
			samples = append(samples, metrics.Sample{Name: d.Name})
		}
	}
	metrics.Read(samples)
	var lines strings.Builder
	for _, s := range samples {
		amount := s.Value.Uint64()
		if strings.HasSuffix(s.Name, ":bytes") {
			amount >>= 20
		}
		fmt.Fprintf(&lines, "%8d %s\n", amount, s.Name)
	}
	if err := os.WriteFile(path+".memory", []byte(lines.String()), 0o600); err != nil {
		log.Fatal(err)
	}
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
