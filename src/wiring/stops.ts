/** What undoes a start, part by part, in reverse. */
export type Undo = () => Promise<void> | void;

/** Runs all of them, the last one first, also where one fails; rejects then with the first such fault. */
export async function stopAll(stops: Undo[]): Promise<void> {
  const faults: unknown[] = [];
  for (const undo of stops.splice(0).reverse()) {
    try {
      await undo();
    } catch (error) {
      faults.push(error);
    }
  }
  if (faults.length > 0) throw faults[0];
}
