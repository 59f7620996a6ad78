// SPDX-License-Identifier: Apache-2.0

package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	cri "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// Reasons of the events of a Collector.
const (
	GCFailed            = "ImageGCFailed"
	FreeDiskSpaceFailed = "FreeDiskSpaceFailed"
	InvalidDiskCapacity = "InvalidDiskCapacity"
)

const (
	// collectEvery is the interval of a Collector's checks of images and disk.
	collectEvery = 5 * time.Minute
	// collectTime bounds a collection.
	collectTime = 10 * time.Minute
)

// Policy decides when unused images are removed.
type Policy struct {
	// High is the disk usage, in percent, from which images are removed until the usage is Low. 100 means never.
	High, Low int64
	// MinAge is the minimum age of a removed image, counted from its first detection. MaxAge is the time after which an unused image is removed,
	// independently of the disk usage; 0 means never.
	MinAge, MaxAge time.Duration
}

// Disk is the file system of images, in bytes.
type Disk struct{ Capacity, Available uint64 }

// Collector removes unused images when they use too much of the disk, like a kubelet, least recently used first. All fields are required.
type Collector struct {
	Policy
	Images cri.ImageManagerService
	// InUse returns IDs, names and references of the images to keep.
	InUse func(ctx context.Context) (map[string]bool, error)
	Disk  func(ctx context.Context) (Disk, error)
	// Event records a warning about the node.
	Event func(reason, message string)

	asked chan chan<- error // requests to free as much as possible

	// owned by Run
	seen   map[string]*seen // by ID
	failed bool             // the last collection failed
}

// NewCollector returns a Collector with the fields of c.
func NewCollector(c Collector) *Collector {
	c.asked = make(chan chan<- error)
	return &c
}

// seen has the recorded use of an image.
type seen struct {
	id             string
	size           uint64
	pinned, inUse  bool
	first, lastUse time.Time // lastUse is zero if the image was never seen in use
}

// Run checks images and disk until ctx ends.
func (c *Collector) Run(ctx context.Context) {
	if err := c.detectUse(ctx, time.Now()); err != nil && ctx.Err() == nil {
		log.G(ctx).WithError(err).Info("which images are in use is not known yet")
	}
	ticker := time.NewTicker(collectEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			c.collectRound(ctx)
		case done := <-c.asked:
			done <- c.freeUnused(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// Free removes all unused images of sufficient age, and returns after the removal. It needs Run.
func (c *Collector) Free(ctx context.Context) error {
	done := make(chan error, 1)
	select {
	case c.asked <- done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *Collector) freeUnused(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, collectTime)
	defer cancel()
	now := time.Now()
	if err := c.detectUse(ctx, now); err != nil {
		return err
	}
	var errs []error
	for _, s := range c.removalOrder(c.unusedImages(), now) {
		errs = append(errs, c.removeImage(ctx, s))
	}
	return errors.Join(errs...)
}

// collectRound runs a collection, and reports the second failure in a row, because a restart of the runtime is not worth an event.
func (c *Collector) collectRound(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, collectTime)
	defer cancel()
	err := c.collectImages(bounded, time.Now())
	switch {
	case ctx.Err() != nil:
	case err != nil && c.failed:
		c.Event(GCFailed, err.Error())
	case err != nil:
		log.G(ctx).WithError(err).Warn("remove images that nothing uses; it is tried again")
	}
	c.failed = err != nil
}

// collectImages removes expired images, and then images to gain space.
func (c *Collector) collectImages(ctx context.Context, now time.Time) error {
	if err := c.detectUse(ctx, now); err != nil {
		return err
	}
	var errs []error
	for _, s := range c.expiredImages(c.unusedImages(), now) {
		errs = append(errs, c.removeImage(ctx, s))
	}
	if c.High >= 100 {
		return errors.Join(errs...)
	}
	disk, err := c.Disk(ctx)
	if err != nil {
		return errors.Join(append(errs, fmt.Errorf("measure the disk of images: %w", err))...)
	}
	if disk.Capacity == 0 {
		c.Event(InvalidDiskCapacity, "invalid capacity 0 on image filesystem")
		return errors.Join(append(errs, errors.New("the file system of images has no capacity"))...)
	}
	excess := c.excessBytes(disk)
	if excess == 0 {
		return errors.Join(errs...)
	}
	log.G(ctx).WithField("bytes", excess).Info("the disk of images is full; images that nothing uses are removed")
	freed := uint64(0)
	for _, s := range c.removalOrder(c.unusedImages(), now) {
		if freed >= excess {
			break
		}
		if err := c.removeImage(ctx, s); err != nil {
			errs = append(errs, err)
			continue
		}
		freed += s.size
	}
	if freed < excess {
		message := fmt.Sprintf("Failed to garbage collect required amount of images. Attempted to free %d bytes, but only found %d bytes eligible to free.", excess, freed)
		c.Event(FreeDiskSpaceFailed, message)
		errs = append(errs, errors.New(message))
	}
	return errors.Join(errs...)
}

// detectUse records the present images, and their use.
func (c *Collector) detectUse(ctx context.Context, now time.Time) error {
	// Get the used images before the list: an image that appears in between is too new to be removed.
	inUse, err := c.InUse(ctx)
	if err != nil {
		return fmt.Errorf("find out which images are in use: %w", err)
	}
	list, err := c.Images.ListImages(ctx, nil)
	if err != nil {
		return fmt.Errorf("list images: %w", err)
	}
	all := make(map[string]*seen, len(list))
	for _, i := range list {
		s := c.seen[i.GetId()]
		if s == nil {
			s = &seen{id: i.GetId(), first: now}
		}
		s.size, s.pinned = i.GetSize(), i.GetPinned()
		s.inUse = slices.ContainsFunc(slices.Concat([]string{i.GetId()}, i.GetRepoTags(), i.GetRepoDigests()), func(name string) bool { return inUse[name] })
		if s.inUse {
			s.lastUse = now
		}
		all[s.id] = s
	}
	c.seen = all
	return nil
}

// unusedImages returns the removable images.
func (c *Collector) unusedImages() []*seen {
	var list []*seen
	for _, s := range c.seen {
		if !s.inUse && !s.pinned {
			list = append(list, s)
		}
	}
	return list
}

func (c *Collector) removeImage(ctx context.Context, s *seen) error {
	if err := c.Images.RemoveImage(ctx, &runtimeapi.ImageSpec{Image: s.id}); err != nil {
		return fmt.Errorf("remove image %s: %w", s.id, err)
	}
	log.G(ctx).WithField("image", s.id).WithField("bytes", s.size).Info("removed an image that nothing uses")
	delete(c.seen, s.id)
	return nil
}

// excessBytes returns the number of bytes to free on a disk.
func (p Policy) excessBytes(d Disk) uint64 {
	free := d.Available * 100 / d.Capacity
	if p.High >= 100 || 100-int64(free) < p.High { //nolint:gosec // a percentage fits
		return 0
	}
	target := d.Capacity / 100 * uint64(100-p.Low) //nolint:gosec // a percentage fits
	return target - min(target, d.Available)
}

// removalOrder returns the images of sufficient age, in the order of removal.
func (p Policy) removalOrder(unused []*seen, now time.Time) []*seen {
	list := slices.DeleteFunc(slices.Clone(unused), func(s *seen) bool { return now.Sub(s.first) < p.MinAge })
	slices.SortFunc(list, func(a, b *seen) int {
		return cmp.Or(a.lastUse.Compare(b.lastUse), a.first.Compare(b.first), cmp.Compare(a.id, b.id))
	})
	return list
}

// expiredImages returns the images unused for too long.
func (p Policy) expiredImages(unused []*seen, now time.Time) []*seen {
	if p.MaxAge <= 0 {
		return nil
	}
	return slices.DeleteFunc(p.removalOrder(unused, now), func(s *seen) bool {
		last := s.first
		if s.lastUse.After(last) {
			last = s.lastUse
		}
		return now.Sub(last) <= p.MaxAge
	})
}
