/** Does all of it in order, so many at a time. */
export async function atOnce<T>(count: number, jobs: readonly (() => Promise<T>)[]): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < jobs.length) {
      const at = next++;
      const result = await jobs[at]?.();
      if (result !== undefined) results.push(result);
    }
  };
  await Promise.all(Array.from({ length: count }, work));
  return results;
}
