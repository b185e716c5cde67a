/** Finds the field that an error of the API concerns, so that a form shows the error at this field. */
import { ApiError } from '../api/client';

/** Returns the text of the error if it concerns the parameter `name`, otherwise null. */
export function findFieldError(error: unknown, name: string): string | null {
  return error instanceof ApiError && error.field === name ? error.message : null;
}
