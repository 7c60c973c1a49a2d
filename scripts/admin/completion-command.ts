import { Argument } from "commander";
import type { Command } from "commander";
import { examples } from "./session.ts";

const SHELLS = ["bash", "zsh"] as const;

export function addCompletionCommand(program: Command): void {
  const completion = program
    .command("completion")
    .description("print a script that adds shell completion for commands and options")
    .addArgument(new Argument("<shell>", "your shell").choices(SHELLS))
    .action((shell: string) => {
      process.stdout.write(completionScript(program, shell === "zsh"));
    });
  examples(completion, "completion bash", "completion zsh");
}

/**
 * Returns the completion script for a shell function or alias named `admin`. zsh runs the script in
 * bash mode.
 */
export function completionScript(program: Command, isZsh: boolean): string {
  const all = [program, ...descendants(program)];
  const options = all.flatMap((one) => one.options);
  const withValue = options.filter(({ required, optional }) => required || optional);
  const flags = new Set(withValue.map(({ long }) => long));
  const values = new Map(
    withValue.map(({ long, argChoices }) => [long, argChoices] as const).filter(([, c]) => c),
  );
  const globals = program.options.map(({ long }) => long);
  const cases = all
    .map((one) => ({ path: pathOf(one, program), words: wordsOf(one, globals) }))
    .toSorted((a, b) => b.path.length - a.path.length) // the longest path is tried first
    .map(({ path, words }) => `    " ${path}"*) found="${words}" ;;`);
  const choices = [...values].map(
    ([flag, given]) => `    ${flag}) found="${(given ?? []).join(" ")}" ;;`,
  );
  return `${isZsh ? "autoload -U +X bashcompinit && bashcompinit\n" : ""}_turnpike_admin() {
  local word before="" at=" " found=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$before" in ${[...flags].join("|")}) ;; *)
      case "$word" in -*) ;; *) at="$at$word " ;; esac ;;
    esac
    before="$word"
  done
  case "$at" in
${cases.join("\n")}
  esac
  case "$before" in
${choices.join("\n")}
    ${[...flags].join("|")}) found="" ;;
  esac
  COMPREPLY=($(compgen -W "$found" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _turnpike_admin admin
`;
}

/** Returns all commands below a command. */
export function descendants({ commands }: Command): readonly Command[] {
  return commands.flatMap((one) => [one, ...descendants(one)]);
}

/** Returns the command's names below the program, each with a trailing space. */
function pathOf(command: Command, program: Command): string {
  if (command === program) return "";
  const above = command.parent === null ? "" : pathOf(command.parent, program);
  return `${above}${command.name()} `;
}

function wordsOf({ commands, options, registeredArguments }: Command, globals: unknown[]): string {
  const choices = registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
  const names = [...commands.map((one) => one.name()), ...choices];
  const flags = new Set([...options.map(({ long }) => long), ...globals, "--help"]);
  return [...names, ...flags].join(" ");
}
