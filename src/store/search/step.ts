/**
 * A search is one course of steps for both stores. The embedded store answers a step at once, inside its thread; PostgreSQL
 * answers later. So the course is a generator: it pauses where the answer is still to come.
 */

/** Part of a course; `yield*` gives its value. */
export type Step<T> = Generator<Promise<unknown>, T, unknown>;

/** What is here at once, or comes later. */
export type Soon<T> = T | Promise<T>;

/** The step of waiting for a value, where it is not here yet. */
export function* got<T>(value: Soon<T>): Step<T> {
  return value instanceof Promise ? ((yield value) as T) : value;
}

/** Runs a course whose steps never wait. */
export function runAtOnce<T>(course: Step<T>): T {
  const step = course.next();
  if (step.done !== true) throw new Error('a step of this course waits');
  return step.value;
}

/** Runs a course, waiting where it waits. */
export async function runWaiting<T>(course: Step<T>): Promise<T> {
  let step = course.next();
  while (step.done !== true) {
    let value: unknown;
    try {
      value = await step.value;
    } catch (error) {
      step = course.throw(error);
      continue;
    }
    step = course.next(value);
  }
  return step.value;
}
