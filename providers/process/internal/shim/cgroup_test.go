// SPDX-License-Identifier: Apache-2.0

//go:build unix

package shim

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestCgroupIsRemovedOnceEmpty checks the removal of a group that still holds a killed process for a while.
func TestCgroupIsRemovedOnceEmpty(t *testing.T) {
	for name, test := range map[string]struct {
		busy       time.Duration
		then, want error
		took       time.Duration
	}{
		"at once":                      {0, nil, nil, 0},
		"when it has exited":           {time.Second, nil, nil, time.Second},
		"gone meanwhile":               {time.Second, fs.ErrNotExist, nil, time.Second},
		"never":                        {time.Hour, nil, syscall.EBUSY, exitPatience + 10*time.Millisecond},
		"what waiting does not change": {0, syscall.EPERM, syscall.EPERM, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				err := onceEmpty(began.Add(exitPatience), func() error {
					if time.Since(began) < test.busy {
						return syscall.EBUSY
					}
					return test.then
				})
				if took := time.Since(began); !errors.Is(err, test.want) || took != test.took {
					t.Errorf("got %v after %s, want %v after %s", err, took, test.want, test.took)
				}
			})
		})
	}
}
