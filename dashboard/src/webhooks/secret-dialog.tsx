/** Shows a new signing secret once. */
import { Text } from '@mantine/core';
import type { WebhookSecret } from '../../../src/operations/webhooks.ts';
import { SecretDialog } from '../parts/secret-dialog';

interface SigningSecretDialogProps {
  readonly webhookSecret: WebhookSecret;
  /** A sentence about the previous secret; null for a new endpoint. */
  readonly previousSecretText: string | null;
  readonly onStored: () => void;
}

export function SigningSecretDialog({ webhookSecret, previousSecretText, onStored }: SigningSecretDialogProps) {
  return (
    <SecretDialog
      title={`Signing secret of ${webhookSecret.id}`}
      secret={webhookSecret.secret}
      label="the secret"
      text="Copy the secret to the configuration of the receiver, which verifies the signature of each request with it. It is shown only once."
      onStored={onStored}
    >
      {previousSecretText === null ? null : <Text>{previousSecretText}</Text>}
    </SecretDialog>
  );
}
