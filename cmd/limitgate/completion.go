package main

import (
	"context"
	"fmt"
	"io"
	"strings"
)

const completionAbout = `Prints the completion of limitgate's commands, flags and files for a shell.

Usage: limitgate completion bash|zsh|fish

It exits with 0, and with 64 when the arguments are wrong.`

var completionExamples = []string{
	"source <(limitgate completion bash)",
	`limitgate completion zsh > "${fpath[1]}/_limitgate"`,
	"limitgate completion fish > ~/.config/fish/completions/limitgate.fish",
}

// completionCommands are the shells that there are completions for.
func completionCommands() []subcommand {
	shells := []struct {
		name  string
		print func(io.Writer, manual)
	}{{"bash", completeBash}, {"zsh", completeZsh}, {"fish", completeFish}}
	var all []subcommand
	for _, s := range shells {
		all = append(all, subcommand{name: s.name, run: func(ctx context.Context, env *environment, args []string) int {
			fs := newFlags(env, "completion "+s.name, completionAbout, completionExamples...)
			if code, done := parseFlags(env, fs, args); done {
				return code
			}
			if fs.NArg() > 0 {
				fmt.Fprintf(env.stderr, "limitgate completion: %.64q is one argument too many\n", fs.Arg(0))
				return exitUsage
			}
			s.print(env.stdout, manualOf(ctx))
			return exitOK
		}})
	}
	return all
}

func runCompletion(ctx context.Context, env *environment, args []string) int {
	for _, c := range completionCommands() {
		if len(args) > 0 && args[0] == c.name {
			return c.run(ctx, env, args[1:])
		}
	}
	fs := newFlags(env, "completion", completionAbout, completionExamples...)
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	fmt.Fprintln(env.stderr, "limitgate completion: say bash, zsh or fish; limitgate completion --help says more")
	return exitUsage
}

// completionWords writes a function of the shell that prints which words and flags may follow the
// words of a command. Behind a flag that needs a value stands =, and behind that the words that are
// its values, or @ for files.
func completionWords(w io.Writer, m manual) {
	fmt.Fprint(w, "_limitgate_words() {\n\tcase $1 in\n")
	m.walk(func(c *manual) {
		var words []string
		for _, u := range c.under {
			words = append(words, u.words[len(u.words)-1])
		}
		if len(c.words) == 0 {
			words = append(words, "help")
		}
		for _, f := range c.flags {
			word := "--" + f.name
			switch files, values := f.values(); {
			case files:
				word += "=@"
			case f.argument != "":
				word += "=" + strings.Join(values, "|")
			}
			words = append(words, word)
		}
		fmt.Fprintf(w, "\t%s) echo %s ;;\n", quoteShell(strings.Join(c.words, " ")), quoteShell(strings.Join(words, " ")))
	})
	fmt.Fprint(w, "\tesac\n}\n\n")
}

// quoteShell quotes a text for sh.
func quoteShell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// completeBash prints the completion for bash, which needs no package beside it.
func completeBash(w io.Writer, m manual) {
	fmt.Fprint(w, "# Completion of limitgate for bash, by limitgate completion bash.\n\n")
	completionWords(w, m)
	fmt.Fprint(w, `_limitgate() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= word i list
	COMPREPLY=()
	# bash splits --flag=value into three words.
	if [ "$cur" = = ]; then
		cur=
	elif [ "$prev" = = ]; then
		prev=${COMP_WORDS[COMP_CWORD-2]}
	fi
	for ((i = 1; i < COMP_CWORD && i < 3; i++)); do
		word=${COMP_WORDS[i]}
		case " $(_limitgate_words "$command") " in
		*" $word "*) command="${command:+$command }$word" ;;
		*) break ;;
		esac
	done
	[ "$command" != help ] || command=
	list=
	for word in $(_limitgate_words "$command"); do
		case $word in
		"$prev=@"|"$prev=") return ;; # files, or anything
		"$prev="*) list=${word#*=} && list=${list//|/ } && break ;;
		--*) list="$list ${word%%=*}" ;;
		*) list="$list $word" ;;
		esac
	done
	COMPREPLY=($(compgen -W "$list" -- "$cur"))
}

complete -o bashdefault -o default -F _limitgate limitgate
`)
}

// completeZsh prints the completion for zsh.
func completeZsh(w io.Writer, m manual) {
	fmt.Fprint(w, "#compdef limitgate\n# Completion of limitgate for zsh, by limitgate completion zsh.\n\n")
	completionWords(w, m)
	fmt.Fprint(w, `_limitgate() {
	local command= word prev=${words[CURRENT-1]}
	local -a list
	for word in "${(@)words[2,CURRENT-1]}"; do
		if (( ${${=$(_limitgate_words "$command")}[(Ie)$word]} )) && [[ $word != -* ]]; then
			command="${command:+$command }$word"
		else
			break
		fi
	done
	[[ $command != help ]] || command=
	for word in ${=$(_limitgate_words "$command")}; do
		case $word in
		"$prev=@") _files; return ;;
		"$prev=") return ;;
		"$prev="*) list=(${(s:|:)word#*=}); compadd -a list; return ;;
		*) list+=(${word%%=*}) ;;
		esac
	done
	compadd -a list
	[[ $PREFIX == -* || -z $command ]] || _files
}

if [ "$funcstack[1]" = _limitgate ]; then
	_limitgate "$@"
else
	compdef _limitgate limitgate
fi
`)
}

// completeFish prints the completion for fish.
func completeFish(w io.Writer, m manual) {
	fmt.Fprint(w, "# Completion of limitgate for fish, by limitgate completion fish.\n\n")
	fmt.Fprint(w, "complete -c limitgate -n __fish_use_subcommand -f\n")
	m.walk(func(c *manual) {
		condition := "__fish_use_subcommand"
		if len(c.words) > 0 {
			condition = "__fish_seen_subcommand_from " + strings.Join(c.words, "; and __fish_seen_subcommand_from ")
		}
		for _, u := range c.under {
			fmt.Fprintf(w, "complete -c limitgate -n %s -a %s -d %s\n", quoteFish(condition), u.words[len(u.words)-1], quoteFish(u.summary))
		}
		for _, f := range c.flags {
			fmt.Fprintf(w, "complete -c limitgate -n %s -l %s", quoteFish(condition), f.name)
			switch files, values := f.values(); {
			case files:
				fmt.Fprint(w, " -r -F")
			case f.argument != "":
				fmt.Fprintf(w, " -x -a %s", quoteFish(strings.Join(values, " ")))
			}
			fmt.Fprintf(w, " -d %s\n", quoteFish(f.help))
		}
	})
}

// quoteFish quotes a text for fish.
func quoteFish(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}
