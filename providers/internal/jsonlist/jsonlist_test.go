// SPDX-License-Identifier: Apache-2.0

package jsonlist

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

type item struct{ ID string }

// TestEachItemIsTaken checks the forms of a page: lists of other names, null, other fields, and no list at all.
func TestEachItemIsTaken(t *testing.T) {
	for text, want := range map[string]string{
		`{"results":[{"id":"a"},{"id":"b"}],"next":"c"}`:               "[a b] c",
		`{"next":null,"more":{"results":[{"id":"x"}]},"results":null}`: "[] ",
		`{"capsules":[{"id":"a","secret":{"id":"x"}}],"results":[]}`:   "[a] ",
		`{}`:                                  "[] ",
		`{"results":[{"id":"a"}`:              "error",
		`{"results":[{"id":"a"}]`:             "error",
		`{"results":{"id":"a"}}`:              "error",
		`{"results":[{"id":1}]}`:              "error",
		`[{"id":"a"}]`:                        "error",
		``:                                    "error",
		`<html>`:                              "error",
		`{"results":[{"id":"password"},"a"],`: "error",
	} {
		var ids []string
		var next *string
		err := Read(strings.NewReader(text), []string{"results", "capsules"}, func(i item) { ids = append(ids, i.ID) }, map[string]any{"next": &next})
		got := "error"
		if err == nil {
			got = fmt.Sprint(ids) + " "
			if next != nil {
				got += *next
			}
		} else if strings.Contains(err.Error(), "password") {
			t.Errorf("%s: the error quotes the answer: %v", text, err)
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// TestCutAnswerKeepsItsCause: a timeout in the middle of a response is not reported as a wrong format.
func TestCutAnswerKeepsItsCause(t *testing.T) {
	cut := io.MultiReader(strings.NewReader(`{"results":[{"id":"a"}`), iotest.ErrReader(context.DeadlineExceeded))
	if err := Read(cut, []string{"results"}, func(item) {}, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestMemoryIsThatOfAnItem reads a page of 8 MiB with items of 1 KiB.
func TestMemoryIsThatOfAnItem(t *testing.T) {
	one := `{"id":"a","more":"` + strings.Repeat("x", 1000) + `"}`
	page := strings.NewReader(`{"results":[` + strings.Join(slices.Repeat([]string{one}, 8<<10), ",") + `]}`)
	n := 0
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := Read(page, []string{"results"}, func(item) { n++ }, nil)
	runtime.ReadMemStats(&after)
	if err != nil || n != 8<<10 {
		t.Fatal(n, err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 4<<20 {
		t.Errorf("reading allocated %d bytes in all", took)
	}
}
