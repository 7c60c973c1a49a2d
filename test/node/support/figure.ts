/** Shows a measured figure in the run's output, where passing tests show nothing else. No test depends on it. */
export function figure(text: string): void {
  process.stdout.write(`figure: ${text}\n`);
}
