/** The name and the expiry of a new key or token. */
import { TextInput } from '@mantine/core';
import { findFieldError } from '../parts/field-error';

export interface CredentialValues {
  readonly name: string;
  readonly expires: string;
}

export const NEW_CREDENTIAL: CredentialValues = { name: '', expires: '' };

interface CredentialFieldsProps {
  readonly values: CredentialValues;
  /** The description of the name field. */
  readonly description: string;
  /** The error of the request. It is shown at the field that caused the error. */
  readonly error: unknown;
  readonly onChange: (values: CredentialValues) => void;
}

export function CredentialFields({ values, description, error, onChange }: CredentialFieldsProps) {
  return (
    <>
      <TextInput
        label="Name"
        description={description}
        value={values.name}
        onChange={(event) => onChange({ ...values, name: event.currentTarget.value })}
        error={findFieldError(error, 'name')}
        maxLength={64}
        autoComplete="off"
        required
        data-autofocus
      />
      <TextInput
        label="Expires"
        description="A date (UTC), or a duration such as 90d. Empty: never."
        value={values.expires}
        onChange={(event) => onChange({ ...values, expires: event.currentTarget.value })}
        error={findFieldError(error, 'expires')}
        autoComplete="off"
      />
    </>
  );
}

/** Returns true if the error concerns one of the fields. */
export function hasCredentialFieldError(error: unknown): boolean {
  return findFieldError(error, 'name') !== null || findFieldError(error, 'expires') !== null;
}

/** Returns the members of the request. Omits an empty expiry. */
export function toCredentialInput({ name, expires }: CredentialValues): object {
  return { name: name.trim(), ...(expires.trim() === '' ? {} : { expires: expires.trim() }) };
}
