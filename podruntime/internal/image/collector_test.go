// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/fakecri"
)

// disk is a machine with images on its disk, and a Collector in fake time.
type disk struct {
	*Collector
	*fakecri.Runtime

	mu     sync.Mutex
	inUse  map[string]bool // guarded by mu
	space  Disk            // guarded by mu
	fails  error           // guarded by mu: of the list of images in use
	events []string        // read only after synctest.Wait
}

// set changes the machine.
func (d *disk) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

func inDisk(t *testing.T, maxAge time.Duration, test func(t *testing.T, d *disk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := fakecri.New(fakecri.Config{})
		d := &disk{Runtime: r, inUse: map[string]bool{}, space: Disk{Capacity: 1000, Available: 500}}
		d.Collector = NewCollector(Collector{
			Policy: Policy{High: 85, Low: 80, MinAge: 2 * time.Minute, MaxAge: maxAge}, Images: r.Client(),
			InUse: func(context.Context) (map[string]bool, error) {
				d.mu.Lock()
				defer d.mu.Unlock()
				return maps.Clone(d.inUse), d.fails
			},
			Disk: func(context.Context) (Disk, error) {
				d.mu.Lock()
				defer d.mu.Unlock()
				return d.space, nil
			},
			Event: func(reason, message string) { d.events = append(d.events, reason+" "+message) },
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			d.Run(ctx)
		}()
		test(t, d)
		cancel()
		<-ended
	})
}

// add puts images on the machine, of 100 bytes each.
func (d *disk) add(names ...string) {
	for _, name := range names {
		d.AddImage(fakecri.Image{Name: name, Size: 100})
	}
}

// use sets the images in use, and waits until the Collector has checked again.
func (d *disk) use(names ...string) {
	synctest.Wait()
	d.set(func() {
		clear(d.inUse)
		for _, name := range names {
			d.inUse["docker.io/library/"+name+":latest"] = true
		}
	})
	time.Sleep(collectEvery)
	synctest.Wait()
}

// left returns the names of the remaining images.
func (d *disk) left(t *testing.T) string {
	t.Helper()
	list, err := d.Client().ListImages(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, i := range list {
		name := strings.TrimPrefix(strings.Join(i.RepoTags, "+"), "docker.io/library/")
		names = append(names, strings.TrimSuffix(name, ":latest"))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestImagesThatWereNotUsedForTheLongestTimeGoFirst(t *testing.T) {
	inDisk(t, 0, func(t *testing.T, d *disk) {
		d.add("never", "long", "short", "used")
		d.use("long", "used")
		d.use("short", "used")
		d.set(func() { d.space.Available = 160 }) // 84 % are used
		d.use("used")
		if got := d.left(t); got != "long never short used" {
			t.Fatalf("below the threshold: got %s, want all", got)
		}
		d.set(func() { d.space.Available = 20 }) // 180 are to be freed
		d.use("used")
		if got := d.left(t); got != "short used" {
			t.Errorf("got %s, want what was used last, and what is used", got)
		}
		if len(d.events) != 0 {
			t.Errorf("got events %q, want none: enough was freed", d.events)
		}
	})
}

func TestImagesThatAreUsedPinnedOrNewStay(t *testing.T) {
	inDisk(t, 0, func(t *testing.T, d *disk) {
		d.AddImage(fakecri.Image{Name: "pinned", Size: 100, Pinned: true})
		d.add("used", "old")
		d.use("used")
		d.set(func() { d.space.Available = 0 })
		synctest.Wait()
		time.Sleep(collectEvery - time.Minute)
		d.add("new")
		d.set(func() { d.inUse["docker.io/library/used:latest"] = true })
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := d.left(t); got != "new pinned used" {
			t.Errorf("got %s, want new, pinned and used", got)
		}
		want := []string{"FreeDiskSpaceFailed Failed to garbage collect required amount of images. Attempted to free 200 bytes, but only found 100 bytes eligible to free."}
		if diff := cmp.Diff(want, d.events); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		d.use("used") // the new image is old, and the collection has failed twice
		d.use("used")
		if got := d.left(t); got != "pinned used" || len(d.events) < 2 || !strings.HasPrefix(d.events[2], "ImageGCFailed Failed to garbage collect") {
			t.Errorf("got %s and events %q, want pinned and used, and an event ImageGCFailed", got, d.events)
		}
	})
}

// TestNoImageGoesWhileItIsNotKnownWhatIsUsed: while the images in use are not known, no image is removed. The
// second failure in a row is reported in one event.
func TestNoImageGoesWhileItIsNotKnownWhatIsUsed(t *testing.T) {
	inDisk(t, 0, func(t *testing.T, d *disk) {
		d.add("a", "b")
		d.use()
		d.set(func() { d.space.Available, d.fails = 0, errors.New("connection refused") })
		d.use()
		if len(d.events) != 0 {
			t.Errorf("got events %q after one failure, want none", d.events)
		}
		d.use()
		if got := d.left(t); got != "a b" {
			t.Errorf("got %s, want both", got)
		}
		if want := "ImageGCFailed find out which images are in use: connection refused"; len(d.events) != 1 || d.events[0] != want {
			t.Errorf("got events %q, want %q", d.events, want)
		}
	})
}

func TestImageThatCannotBeRemovedKeepsNoOther(t *testing.T) {
	inDisk(t, 0, func(t *testing.T, d *disk) {
		d.add("a", "b")
		d.use()
		d.Fail("RemoveImage", 1, errors.New("it is used after all"))
		d.set(func() { d.space.Available = 150 }) // 85 % are used, 50 bytes must be freed
		d.use()
		if got := d.left(t); len(strings.Fields(got)) != 1 {
			t.Errorf("got %s, want one of two", got)
		}
	})
}

func TestImagesThatNobodyUsesForLongGoWithSpaceLeft(t *testing.T) {
	inDisk(t, time.Hour, func(t *testing.T, d *disk) {
		d.add("used", "lately", "unused")
		for range 12 {
			d.use("used", "lately")
		}
		if got := d.left(t); got != "lately unused used" {
			t.Errorf("after an hour: got %s, want all", got)
		}
		d.use("used")
		if got := d.left(t); got != "lately used" {
			t.Errorf("after more than an hour: got %s, want what was used in it", got)
		}
	})
}

func TestFreeRemovesAllThatNothingUses(t *testing.T) {
	inDisk(t, 0, func(t *testing.T, d *disk) {
		d.add("used", "a", "b")
		d.use("used")
		d.add("new")
		if err := d.Free(t.Context()); err != nil || d.left(t) != "new used" {
			t.Errorf("got %s, %v; want new and used, with half of the disk free", d.left(t), err)
		}
	})
}

func TestExcess(t *testing.T) {
	for _, c := range []struct {
		high, low           int64
		capacity, available uint64
		want                uint64
	}{
		{85, 80, 1000, 160, 0},
		{85, 80, 1000, 151, 0}, // 85 % are full when 15 % or less are free, of whole percents
		{85, 80, 1000, 150, 50},
		{85, 80, 1000, 0, 200},
		{100, 80, 1000, 0, 0},
		{0, 0, 1000, 400, 600},
		{85, 80, 50 << 40, 0, 10 << 40},
	} {
		got := Policy{High: c.high, Low: c.low}.excessBytes(Disk{c.capacity, c.available})
		if diff := int64(got) - int64(c.want); diff > 100 || diff < -100 {
			t.Errorf("high %d, low %d, %d of %d available: got %d, want %d", c.high, c.low, c.available, c.capacity, got, c.want)
		}
	}
}
