// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	yamldocs "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli/configfile"
)

// podChecker writes a line for each pod that it reads.
type podChecker struct {
	out    io.Writer
	stdin  io.Reader
	refuse func(*corev1.Pod) (without []capability.Unsupported, err error)

	seen  int
	fails bool // a pod cannot run
}

// checkFiles reads files, folders and, for -, standard input, and returns whether all pods can run.
func (c *podChecker) checkFiles(names []string) (fine bool, err error) {
	for _, name := range names {
		files := []string{name}
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			if files, err = manifests(name); err != nil {
				return false, err
			}
		}
		for _, file := range files {
			if err := c.checkFile(file); err != nil {
				return false, err
			}
		}
	}
	if c.seen == 0 {
		return false, fmt.Errorf("%s has no pod, and nothing that makes pods", strings.Join(names, ", "))
	}
	return !c.fails, nil
}

// manifests returns the files of a folder that kubectl would read.
func manifests(dir string) (files []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the pods: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("read the pods: folder %s has no file whose name ends in .yaml, .yml or .json", dir)
	}
	return files, nil
}

func (c *podChecker) checkFile(name string) error {
	in := c.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("read the pods: %w", err)
		}
		defer f.Close()
		in = f
	}
	for docs := yamldocs.NewYAMLReader(bufio.NewReader(in)); ; {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && len(bytes.TrimSpace(doc)) > 0 {
			var object []byte
			if object, err = yaml.YAMLToJSONStrict(doc); err == nil {
				err = c.checkObject(object, typeMeta{})
			}
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
	}
}

// typeMeta is the kind and the version of an object.
type typeMeta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// strict returns errors for unknown fields, and the object without them.
var strict = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// checkObject checks the pod of an object, or the pods of a list. The items of a typed list get their kind from
// the list.
func (c *podChecker) checkObject(text []byte, of typeMeta) error {
	var head struct {
		typeMeta
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return err
	}
	if item, isList := strings.CutSuffix(head.Kind, "List"); isList {
		of := typeMeta{Kind: item}
		if item != "" {
			of.APIVersion = head.APIVersion
		}
		for i, one := range head.Items {
			if err := c.checkObject(one, of); err != nil {
				return fmt.Errorf("items[%d]: %w", i, err)
			}
		}
		return nil
	}
	if head.Kind == "" && of.Kind != "" {
		fields := map[string]json.RawMessage{}
		if err := json.Unmarshal(text, &fields); err != nil {
			return err
		}
		fields["kind"], _ = json.Marshal(of.Kind) // a string: never fails
		fields["apiVersion"], _ = json.Marshal(of.APIVersion)
		text, _ = json.Marshal(fields)
	}
	object, _, err := strict.Decode(text, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		return nil // a custom resource
	}
	unknown, misspelt := runtime.AsStrictDecodingError(err)
	if err != nil && (!misspelt || object == nil) {
		return err
	}
	pod := podOf(object)
	if pod == nil {
		return nil
	}
	c.seen++
	says := c.judge(pod)
	if misspelt {
		c.fails = true
		says = fieldProblems(object, unknown.Errors())
	}
	_, err = fmt.Fprintf(c.out, "%s: %s\n", title(object), says)
	return err
}

// judge reports whether the node can run the pod, and without which features.
func (c *podChecker) judge(pod *corev1.Pod) string {
	without, err := c.refuse(pod)
	if err != nil {
		c.fails = true
		return err.Error()
	}
	says := "can run"
	for _, u := range without {
		says += "; without " + u.String()
	}
	if names := unread(pod); len(names) > 0 {
		says += "; not read: " + strings.Join(names, ", ")
	}
	return says
}

// unknownField matches the words of the strict decoder.
var unknownField = regexp.MustCompile(`^unknown field "(.*)"$`)

// fieldProblems joins the errors of the strict decoder, with the names that were likely meant.
func fieldProblems(object runtime.Object, errs []error) string {
	texts := make([]string, 0, len(errs))
	for _, err := range errs {
		text := err.Error()
		if m := unknownField.FindStringSubmatch(text); m != nil {
			path := strings.Split(m[1], ".")
			if near := configfile.Nearest(path[len(path)-1], fieldsAt(reflect.TypeOf(object), path[:len(path)-1])); near != "" {
				text += "; did you mean " + near + "?"
			}
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// fieldsAt returns the names of the fields of an object at the path, such as spec, containers[0]; nil if there
// are none.
func fieldsAt(t reflect.Type, path []string) (names []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && strings.Contains(options, "inline") {
			if found := fieldsAt(f.Type, path); len(found) > 0 && len(path) > 0 {
				return found
			} else if len(path) == 0 {
				names = append(names, found...)
			}
			continue
		}
		if len(path) == 0 {
			names = append(names, name)
			continue
		}
		if step, _, _ := strings.Cut(path[0], "["); step == name {
			return fieldsAt(f.Type, path[1:])
		}
	}
	return names
}
