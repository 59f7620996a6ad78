// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// licences finds the licences of modules by the files in their folders.
type licences struct {
	// modules is the folder of Go's module cache, goroot the folder of Go, ours the folder of the sources.
	modules, goroot, ours string
	// found are the licences of the components that were asked for, by path and version.
	found map[string]found
}

// found is the licence of a component.
type found struct {
	expression string
	// texts are the licences and notices themselves.
	texts []string
}

func newLicences(ctx context.Context, root string) (*licences, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find the licences of modules: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return &licences{modules: lines[0], goroot: lines[1], ours: root, found: map[string]found{}}, nil
}

// licenceFile matches the names of files with a licence or a notice that goes with the program.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|unlicense)([.-].*)?$`)

// of returns the licences of a component as an SPDX expression, or NOASSERTION if it recognises none.
func (l *licences) of(c component) (string, error) {
	key := c.path + " " + c.version
	if f, has := l.found[key]; has {
		return f.expression, nil
	}
	folder := l.folder(c)
	entries, err := os.ReadDir(folder) // in the order of names
	if err != nil {
		return "", fmt.Errorf("find the licence of %s: %w", key, err)
	}
	f := found{expression: noAssertion}
	var ids []string
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return "", fmt.Errorf("find the licence of %s: %w", key, err)
		}
		f.texts = append(f.texts, strings.TrimSpace(string(text)))
		ids = append(ids, recognise(string(text))...)
	}
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) > 0 {
		f.expression = strings.Join(ids, " AND ")
	}
	l.found[key] = f
	return f.expression, nil
}

const noAssertion = "NOASSERTION"

// folder returns the folder of the files of a component.
func (l *licences) folder(c component) string {
	switch {
	case c.path == "stdlib":
		return l.goroot
	case c.sum == "":
		return l.ours
	}
	var escaped strings.Builder // the module cache writes an upper-case letter as ! and its lower-case letter
	for _, r := range c.path + "@" + c.version {
		if unicode.IsUpper(r) {
			escaped.WriteByte('!')
		}
		escaped.WriteRune(unicode.ToLower(r))
	}
	return filepath.Join(l.modules, filepath.FromSlash(escaped.String()))
}

// recognise returns the SPDX identifiers of the licences in a text, by words that only they have.
func recognise(text string) (ids []string) {
	text = strings.Join(strings.Fields(text), " ")
	add := func(id string, is bool) {
		if is {
			ids = append(ids, id)
		}
	}
	has := func(words string) bool { return strings.Contains(text, words) }
	bsd, endorse := has("Redistribution and use in source and binary forms"), has("endorse or promote")
	add("Apache-2.0", has("Apache License") && has("Version 2.0"))
	add("BSD-2-Clause", bsd && !endorse)
	add("BSD-3-Clause", bsd && endorse)
	add("ISC", has("Permission to use, copy, modify, and") && has("distribute this software"))
	add("MIT", has("Permission is hereby granted, free of charge"))
	add("MPL-2.0", has("Mozilla Public License") && has("2.0"))
	add("Unlicense", has("This is free and unencumbered software"))
	return ids
}

// notice returns the text that goes with the programs: the licences and notices of all modules, each text once.
func (l *licences) notice() string {
	by := map[string][]string{}
	for _, module := range slices.Sorted(maps.Keys(l.found)) {
		for _, text := range l.found[module].texts {
			by[text] = append(by[text], module)
		}
	}
	texts := slices.SortedFunc(maps.Keys(by), func(a, b string) int { return strings.Compare(by[a][0]+a, by[b][0]+b) })
	var out strings.Builder
	out.WriteString("The programs contain the software below, with these licences and notices.\n")
	for _, text := range texts {
		fmt.Fprintf(&out, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(by[text], "\n"), text)
	}
	return out.String()
}
