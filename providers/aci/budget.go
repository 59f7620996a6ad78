// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"sync"
	"time"
)

// budget is a number of requests a minute.
type budget struct {
	mu     sync.Mutex
	minute float64
	left   float64   // guarded by mu
	at     time.Time // guarded by mu
}

func newBudget(minute int) *budget {
	return &budget{minute: float64(minute), left: float64(minute) / 3, at: time.Now()}
}

// has reports whether n requests can be spent.
func (b *budget) has(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.left = min(b.left+now.Sub(b.at).Minutes()*b.minute, b.minute/3)
	b.at = now
	return b.left >= float64(n)
}

// spend takes n away, also those that are not there.
func (b *budget) spend(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left -= float64(n)
}
