// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"go/types"
	"slices"
	"strings"
)

// identifier is the subject of a line in the list.
type identifier struct{ path, kind, name string }

func (i identifier) String() string { return i.path + " " + i.kind + " " + i.name }

// exported describes the exported identifiers of a package, each with its
// type. Fields and methods are identifiers of their own.
func exported(p *types.Package) map[identifier]string {
	found := map[identifier]string{}
	add := func(kind, name, typ string) { found[identifier{p.Path(), kind, name}] = typ }
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		switch o := o.(type) {
		case *types.Const:
			add("const", name, typeString(o.Type())+" = "+o.Val().ExactString())
		case *types.Var:
			add("var", name, typeString(o.Type()))
		case *types.Func:
			add("func", name, signature(o.Signature(), true))
		case *types.TypeName:
			describeType(o, add)
		}
	}
	return found
}

func describeType(o *types.TypeName, add func(kind, name, typ string)) {
	if o.IsAlias() {
		add("type", o.Name(), "= "+typeString(types.Unalias(o.Type())))
		return
	}
	methods := types.NewMethodSet(types.NewPointer(o.Type()))
	switch u := o.Type().Underlying().(type) {
	case *types.Interface:
		add("type", o.Name(), "interface")
		// Unexported methods count too, because no other package could implement them.
		methods = types.NewMethodSet(o.Type())
		for m := range methods.Methods() {
			add("method", o.Name()+"."+m.Obj().Name(), signature(m.Obj().(*types.Func).Signature(), true))
		}
		return
	case *types.Struct:
		add("type", o.Name(), "struct")
		fields := slices.Collect(u.Fields())
		open := slices.ContainsFunc(fields, (*types.Var).Exported)
		for _, f := range fields {
			// An unexported field prevents a conversion, as an exported field does. But a struct without
			// exported fields concerns only its own package.
			if open {
				add("field", o.Name()+"."+f.Name(), typeString(f.Type()))
			}
		}
	default:
		add("type", o.Name(), typeString(u))
	}
	for m := range methods.Methods() {
		if f, ok := m.Obj().(*types.Func); ok && f.Exported() {
			add("method", o.Name()+"."+f.Name(), signature(f.Signature(), true))
		}
	}
}

// typeString prints a type with full import paths and without the names of parameters, because no caller can
// depend on these names.
func typeString(t types.Type) string {
	switch t := t.(type) {
	case *types.Signature:
		return signature(t, false)
	case *types.Pointer:
		return "*" + typeString(t.Elem())
	case *types.Slice:
		return "[]" + typeString(t.Elem())
	case *types.Map:
		return "map[" + typeString(t.Key()) + "]" + typeString(t.Elem())
	case *types.Chan:
		return map[types.ChanDir]string{types.SendRecv: "chan ", types.SendOnly: "chan<- ", types.RecvOnly: "<-chan "}[t.Dir()] +
			typeString(t.Elem())
	case *types.Named:
		// A type that other modules cannot name counts as its underlying type.
		if p := t.Obj().Pkg(); p != nil && strings.Contains("/"+p.Path()+"/", "/internal/") {
			return typeString(t.Underlying())
		}
	}
	return types.TypeString(t, (*types.Package).Path)
}

// signature prints a function type. The list puts a single result of a declared function in parentheses, but not
// a single result of a function type.
func signature(s *types.Signature, declared bool) string {
	params := elements(s.Params())
	if s.Variadic() {
		last := len(params) - 1
		params[last] = "..." + strings.TrimPrefix(params[last], "[]")
	}
	out := "func(" + strings.Join(params, ", ") + ")"
	switch results := elements(s.Results()); {
	case len(results) == 0:
	case len(results) == 1 && !declared:
		out += " " + results[0]
	default:
		out += " (" + strings.Join(results, ", ") + ")"
	}
	return out
}

func elements(t *types.Tuple) []string {
	var out []string
	for v := range t.Variables() {
		out = append(out, typeString(v.Type()))
	}
	return out
}
