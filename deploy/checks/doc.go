// Package checks holds the tests of the files in deploy that other systems read: images,
// services, packages, and objects of Kubernetes and ECS. They read each file as its system does, without unknown fields, and
// compare the flags, settings, ports and paths in it with the program.
//
// It has no code to import. It is a module of its own, because the libraries of those systems
// are large.
package checks
