// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"
	"time"
)

func TestCPUTimeOfAProgramWithAnOddName(t *testing.T) {
	const stat = "42 (a) S (b) S 1 42 42 0 -1 4194560 900 0 0 0 150 25 7 8 20 0 9 0 12345 1000000 500 18446744073709551615\n"
	got, err := parseCPUTime([]byte(stat))
	if want := 1750 * time.Millisecond; err != nil || got != want {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if all, err := sumCPUTime([]byte(stat), 14, 17); err != nil || all != 1900*time.Millisecond {
		t.Errorf("with programs that it has run it is %v, %v; want %v", all, err, 1900*time.Millisecond)
	}
	if _, err := parseCPUTime([]byte("42 (a) S 1")); err == nil {
		t.Error("a short line was accepted")
	}
}

func TestPeakMemory(t *testing.T) {
	got, err := parsePeakMemory("Name:\tx\nVmPeak:\t  900 kB\nVmHWM:\t  64 kB\nVmRSS:\t  32 kB\n")
	if err != nil || got != 64<<10 {
		t.Errorf("got %d, %v; want %d", got, err, 64<<10)
	}
	if _, err := parsePeakMemory("Name:\tx\nState:\tZ (zombie)\n"); err == nil {
		t.Error("a process without memory has a peak")
	}
}

func TestOwnProcessIsReadable(t *testing.T) {
	if _, err := cpuTime(os.Getpid()); err != nil {
		t.Error(err)
	}
	if peak, err := peakMemory(os.Getpid()); err != nil || peak == 0 {
		t.Errorf("got %d bytes, %v", peak, err)
	}
	if _, err := readLoad(); err != nil {
		t.Error(err)
	}
}
