export async function mapConcurrently<T, R>(
  limit: number,
  items: readonly T[],
  work: (item: T) => Promise<R>,
): Promise<readonly R[]> {
  const answers: R[] = [];
  const remaining = items.entries();
  const worker = async (): Promise<void> => {
    for (const [i, item] of remaining) {
      answers[i] = await work(item);
    }
  };
  await Promise.all(Array.from({ length: limit }, worker));
  return answers;
}
