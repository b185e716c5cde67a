/** The dialog that creates a token. `onCreated` receives the new token, which is shown only once. */
import { Switch } from '@mantine/core';
import { useState } from 'react';
import type { CreatedToken } from '../../../src/operations/tokens/schemas.ts';
import { post } from '../api/client';
import { useApiMutation } from '../api/mutation';
import {
  CredentialFields,
  hasCredentialFieldError,
  NEW_CREDENTIAL,
  toCredentialInput,
} from '../credentials/credential-fields';
import { FormDialog } from '../parts/form-dialog';

interface CreateTokenDialogProps {
  readonly onCreated: (newToken: CreatedToken) => void;
  readonly onClose: () => void;
}

export function CreateTokenDialog({ onCreated, onClose }: CreateTokenDialogProps) {
  const [values, setValues] = useState(NEW_CREDENTIAL);
  const [readOnly, setReadOnly] = useState(false);
  const create = useApiMutation(
    () => post<CreatedToken>('/tokens', { ...toCredentialInput(values), readOnly }),
    ['tokens'],
  );
  return (
    <FormDialog
      opened
      title="Create a token"
      action="Create token"
      busy={create.isPending}
      disabled={values.name.trim() === ''}
      error={create.error}
      hasFieldError={hasCredentialFieldError(create.error)}
      onSubmit={() => create.mutate(undefined, { onSuccess: onCreated })}
      onClose={onClose}
    >
      <CredentialFields
        values={values}
        description="The name is the actor in the audit log, such as the program that uses the token."
        error={create.error}
        onChange={setValues}
      />
      <Switch
        label="Read only"
        description="The token can read everything and change nothing."
        checked={readOnly}
        onChange={(event) => setReadOnly(event.currentTarget.checked)}
      />
    </FormDialog>
  );
}
