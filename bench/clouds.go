// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// endings is the number of pods that end by themselves while all is at rest, and endingsEvery the time
	// between two ends. The ends are spread over a round of an agent that polls for states.
	endings, endingsEvery = 20, 2900 * time.Millisecond
	// endingsPatience is the time to wait for the status of the last end. Ends that are not seen by then count
	// with the time until then.
	endingsPatience = 2 * time.Minute
)

// cloud is the emulator of a cloud in a process of its own, which simulates the containers and writes a journal.
type cloud struct {
	program  *process
	commands io.WriteCloser // takes the IDs of groups to end
	dir      string
	provider string   // file with the configuration of the cloud's provider
	env      []string // variables that the provider needs
}

// happening is a line of the journal.
type happening struct {
	at    time.Time
	what  string
	words []string
}

// readJournal reads the journal so far.
func (c *cloud) readJournal() (all []happening, err error) {
	text, err := os.ReadFile(filepath.Join(c.dir, "journal"))
	if err != nil {
		return nil, fmt.Errorf("read the journal of the emulator: %w", err)
	}
	for line := range bytes.Lines(text) {
		if line[len(line)-1] != '\n' {
			break // it is being written
		}
		words := strings.Fields(string(line))
		if len(words) < 3 {
			return nil, fmt.Errorf("read the journal of the emulator: %q has too few words", line)
		}
		at, err := parseSeconds(words[0])
		if err != nil {
			return nil, fmt.Errorf("read the journal of the emulator: %w", err)
		}
		all = append(all, happening{at, words[1], words[2:]})
	}
	return all, nil
}

// refusedFor is the prefix of the kind of a request refused because of too many requests.
const refusedFor = "refused for its rate: "

func (c *cloud) countRequests(from, to time.Time) (requests, error) {
	all, err := c.readJournal()
	if err != nil {
		return nil, err
	}
	var l ledger
	for _, e := range all {
		if e.what == "request" && len(e.words) == 2 {
			key := e.words[0]
			if e.words[1] == "refused" {
				key = refusedFor + key
			}
			l.recordRequest(e.at, key)
		}
	}
	return l.countRequests(from, to)
}

// podLives joins the events of groups with the names of their pods.
func (c *cloud) podLives(context.Context, string) (map[string]lived, error) {
	all, err := c.readJournal()
	if err != nil {
		return nil, err
	}
	pods, lives := map[string]string{}, map[string]lived{}
	for _, e := range all {
		if e.what == "made" && len(e.words) == 2 {
			pods[e.words[0]] = e.words[1]
		}
	}
	for _, e := range all {
		name := pods[e.words[0]]
		k := lives[name]
		switch {
		case e.what == "began" && k.began.IsZero():
			k.began = e.at
		case e.what == "ended" && k.exited.IsZero():
			k.exited = e.at
		case e.what == "gone" && k.ended.IsZero():
			k.ended = e.at
		default:
			continue
		}
		lives[name] = k
	}
	return lives, nil
}

// groupIDs returns the IDs of groups, by the names of their pods.
func (c *cloud) groupIDs() (map[string]string, error) {
	all, err := c.readJournal()
	ids := map[string]string{}
	for _, e := range all {
		if e.what == "made" && len(e.words) == 2 {
			ids[e.words[1]] = e.words[0]
		}
	}
	return ids, err
}

// endContainers lets the containers of a pod exit by themselves.
func (c *cloud) endContainers(group string) error {
	_, err := fmt.Fprintln(c.commands, group)
	return err
}

// leftQuestion makes the emulator write the remaining objects into its journal.
const leftQuestion = "left?"

// countRemaining asks the emulator for the remaining objects of the agent, and returns their number by kind.
func (c *cloud) countRemaining(ctx context.Context) (map[string]int, error) {
	asked := time.Now().Add(-time.Millisecond) // the journal has microseconds
	if _, err := fmt.Fprintln(c.commands, leftQuestion); err != nil {
		return nil, fmt.Errorf("ask the emulator what is left: %w", err)
	}
	for {
		all, err := c.readJournal()
		if err != nil {
			return nil, err
		}
		if kinds, whole, err := leftSince(all, asked); err != nil || whole {
			return kinds, err
		}
		if err := waitFor(ctx, 50*time.Millisecond); err != nil {
			return nil, fmt.Errorf("wait until the emulator tells what is left: %w", err)
		}
	}
}

// leftSince returns the remaining objects in the journal since a time, and whether the list is complete.
func leftSince(all []happening, asked time.Time) (kinds map[string]int, whole bool, err error) {
	kinds = map[string]int{}
	for _, e := range all {
		if e.what != "left" || e.at.Before(asked) || len(e.words) != 2 {
			continue
		}
		if e.words[0] == "all" {
			return kinds, true, nil
		}
		if kinds[e.words[0]], err = strconv.Atoi(e.words[1]); err != nil {
			return nil, false, fmt.Errorf("read what is left: %w", err)
		}
	}
	return kinds, false, nil
}

// stop ends the emulator.
func (c *cloud) stop() {
	c.program.stop()
	_ = c.commands.Close()
}

// endSomePods lets some pods end by themselves, one after the other, and returns when their statuses have been seen.
func (l *life) endSomePods(ctx context.Context) error {
	c, ok := l.agent.backend.(*cloud)
	if !ok || !l.scenario.hasEnds() {
		return nil
	}
	ids, err := c.groupIDs()
	if err != nil {
		return err
	}
	n := min(endings, l.scenario.Pods)
	chosen := rand.Perm(l.scenario.Pods)[:n]
	slices.Sort(chosen)
	for _, i := range chosen {
		if err := c.endContainers(ids[podName(i)]); err != nil {
			return fmt.Errorf("let the containers of %s exit: %w", podName(i), err)
		}
		if err := waitFor(ctx, endingsEvery); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, endingsPatience, errUnseen)
	defer cancel()
	if err := l.wait(ctx, l.tracker.someEnded); !errors.Is(err, errUnseen) {
		return err
	}
	return nil
}

// errUnseen means that the ends of some pods were not seen.
var errUnseen = fmt.Errorf("some ends were not seen within %s", endingsPatience)

// setExits compares the times at which containers exited by themselves with the times at which that was seen,
// until a given time.
func (r *remote) setExits(known []lived, seen []time.Time, until time.Time) {
	var at, after []time.Time
	for i, k := range known {
		if k.exited.IsZero() {
			continue
		}
		at = append(at, k.exited)
		if seen[i].IsZero() || seen[i].After(until) {
			r.Unseen++
			after = append(after, until)
		} else {
			after = append(after, seen[i])
		}
	}
	if len(at) > 0 {
		lags := sortedDelays(at, after)
		r.ExitLagP50Millis, r.ExitLagP99Millis = inMillis(percentileOf(lags, 50)), inMillis(percentileOf(lags, 99))
	}
}

// countRefused returns the number of requests above the quotas of the service, including requests at rest.
func (r *remote) countRefused() (n int) {
	for _, all := range []requests{r.Requests, r.Rest} {
		for key, count := range all {
			if strings.HasPrefix(key, refusedFor) {
				n += count
			}
		}
	}
	return n
}
