/** An answer of the store that is good for a moment: whoever asks within it, or while it is on its way, shares it. */

/** `now` is in ms. A fault is shared by those who wait for it, and not remembered. */
export function remember<T>(ask: () => Promise<T>, forMs: number, now: () => number): () => Promise<T> {
  let answer: Promise<T> | null = null;
  let askedAt = 0;
  return () => {
    if (answer !== null && Math.abs(now() - askedAt) < forMs) return answer;
    const asked = ask();
    answer = asked;
    askedAt = now();
    asked.catch(() => {
      if (answer === asked) answer = null;
    });
    return asked;
  };
}
