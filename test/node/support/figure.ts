/** Prints a measured figure, because passing tests print nothing. No test depends on it. */
export function figure(text: string): void {
  process.stdout.write(`figure: ${text}\n`);
}
