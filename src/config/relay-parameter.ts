/**
 * Checks values that a relay receives in a header field: a message stream, or a configuration set of Amazon SES. A
 * value is written into the field unchanged.
 */

/** The form that Amazon SES requires of the name of a configuration set. */
const NAME_FORM = /^[A-Za-z0-9_-]{1,64}$/;
export const RELAY_PARAMETER_FORM_TEXT = 'a name of at most 64 letters, digits, - and _';

export function isRelayParameterValue(text: string): boolean {
  return NAME_FORM.test(text);
}
